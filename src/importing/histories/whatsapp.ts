/**
 * WhatsApp's exported `.txt`, of Android and iOS, in any language: no zone, no ids, day and month in the phone's order. The
 * order is decided over the whole file, so the file is read twice.
 */
import {
  type HistoryFile,
  type HistoryFormat,
  type HistoryItem,
  LEFT,
  linesIn,
  occurrences,
  type Wall,
  wallClock,
} from './history.js';

/** Marks of direction, which WhatsApp puts before times, names, media and its own lines. */
const MARKS = /[\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g;
const DATE = /(\d{1,4})\s?[./-]\s?(\d{1,2})\s?[./-]\s?(\d{1,4})\.?/;
const BEFORE_NOON = '上午|오전|午前|凌晨|早上|ص';
const AFTER_NOON = '下午|오후|午後|晚上|م';
const HALF = `[ap]\\.?\\s?m\\.?|${BEFORE_NOON}|${AFTER_NOON}`;
const TIME = new RegExp(`(?:(${HALF})\\s?)?(\\d{1,2})[:.](\\d{2})(?:[:.](\\d{2}))?(?:\\s?(${HALF}))?`, 'iu');
const MOMENT = `${DATE.source}[,،]?\\s+${TIME.source}`;
const HEADS = {
  ios: new RegExp(`^\\[${MOMENT}\\]\\s`, 'iu'),
  android: new RegExp(`^${MOMENT}\\s[-–]\\s`, 'iu'),
};
type Style = keyof typeof HEADS;

/** In every script; a quick test for most lines. */
const MAY_BEGIN = /^[\s\u200e\u200f\u202a-\u202e\ufeff]*\[?\p{Nd}/u;
const OTHER_DIGITS = /[^\P{Nd}0-9]/gu;

interface Stamp {
  style: Style;
  /** As written, left to right. */
  parts: [string, string, string];
  hour: number;
  minute: number;
  second: number;
  hasHalf: boolean;
  rest: string;
}

/** Digits of each script stand in tens, from the zero on. */
function asciiDigit(digit: string): string {
  const code = digit.codePointAt(0) ?? 0;
  let zero = code;
  while (code - zero < 9 && /\p{Nd}/u.test(String.fromCodePoint(zero - 1))) zero--;
  return String((code - zero) % 10);
}

/** null: the line belongs to the message before. `only`: the style of the file. */
export function stampOf(line: string, only: Style | null): Stamp | null {
  if (!MAY_BEGIN.test(line)) return null;
  const bare = line.replace(/^[\s\u200e\u200f\u202a-\u202e\ufeff]+/, '');
  const head = bare.slice(0, 80).replace(MARKS, ' ').replace(OTHER_DIGITS, asciiDigit);
  for (const style of only === null ? (['ios', 'android'] as const) : [only]) {
    const found = HEADS[style].exec(head);
    if (found === null) continue;
    const [all, a = '', b = '', c = '', before = '', hour = '', minute = '', second = '0', after = ''] =
      found;
    const half = (before || after).toLowerCase();
    const isLate = half.startsWith('p') || new RegExp(`^(?:${AFTER_NOON})$`).test(half);
    const hours = half === '' ? Number(hour) : (Number(hour) % 12) + (isLate ? 12 : 0);
    const time = { hour: hours, minute: Number(minute), second: Number(second) };
    return { style, parts: [a, b, c], ...time, hasHalf: half !== '', rest: bare.slice(all.length) };
  }
  return null;
}

type Order = 'day first' | 'month first' | 'year first';

export interface Reading {
  style: Style | null;
  order: Order;
  note: string | null;
}

const SHOWN: Record<Order, string> = {
  'day first': 'day, month, year',
  'month first': 'month, day, year',
  'year first': 'year, month, day',
};

function dateOf([a, b, c]: Stamp['parts'], order: Order): { year: number; month: number; day: number } {
  const full = (year: string) => (year.length > 2 ? Number(year) : 2000 + Number(year));
  if (order === 'year first') return { year: full(a), month: Number(b), day: Number(c) };
  return order === 'day first'
    ? { year: full(c), month: Number(b), day: Number(a) }
    : { year: full(c), month: Number(a), day: Number(b) };
}

/** How often time would run backwards: chats are exported in order. */
class Backwards {
  times = 0;
  private last = 0;

  constructor(private readonly order: Order) {}

  add(parts: Stamp['parts']): void {
    const { year, month, day } = dateOf(parts, this.order);
    const at = (year * 100 + month) * 100 + day;
    if (at < this.last) this.times++;
    this.last = at;
  }
}

/** Reads all dates: one with a day above 12 decides; else in which order time runs forward. */
export async function readingOf(file: HistoryFile): Promise<Reading> {
  let style: Style | null = null;
  let lastParts = '';
  const seen = { dayFirst: 0, monthFirst: 0, yearFirst: 0, half: 0 };
  const byDay = new Backwards('day first');
  const byMonth = new Backwards('month first');
  for await (const lines of linesIn(file.bytes())) {
    for (const line of lines) {
      const stamp = stampOf(line, style);
      if (stamp === null) continue;
      style ??= stamp.style;
      if (stamp.hasHalf) seen.half++;
      const written = stamp.parts.join(' ');
      if (written === lastParts) continue;
      lastParts = written;
      const [a, b] = stamp.parts;
      if (a.length > 2 || Number(a) > 31) seen.yearFirst++;
      else if (Number(a) > 12) seen.dayFirst++;
      else if (Number(b) > 12) seen.monthFirst++;
      byDay.add(stamp.parts);
      byMonth.add(stamp.parts);
    }
  }
  const { dayFirst, monthFirst, yearFirst, half } = seen;
  if (yearFirst > dayFirst + monthFirst) return { style, order: 'year first', note: null };
  if (dayFirst !== monthFirst) {
    return { style, order: dayFirst > monthFirst ? 'day first' : 'month first', note: null };
  }
  const isForward = byDay.times !== byMonth.times;
  const isDayFirst = isForward ? byDay.times < byMonth.times : half === 0;
  const order = isDayFirst ? 'day first' : 'month first';
  const because = isForward
    ? 'so they run forward'
    : `as is usual with ${half > 0 ? 'am and pm' : '24 hours'}`;
  return {
    style,
    order,
    note: `No date tells day and month apart; they were read as ${SHOWN[order]}, ${because}.`,
  };
}

/** `<Media omitted>`, in each language. */
const MEDIA = /^\u200e?<[^<>\n]{3,60}>$/;
/** `IMG-20230104-WA0001.jpg (file attached)` */
const ATTACHED = /^\u200e?[^\s/\\]+\.\w{2,5} \([^()\n]{3,60}\)(?:\n|$)/;
/** iOS: `<attached: 0001-PHOTO.jpg>`, also behind a caption; and its mark of an edited message. */
const MARKED = /\u200e<[^<>\n]{3,120}>/g;
const EDITED = /<This message was edited>$/;
const DELETED = /^(?:This message was deleted|You deleted this message|null)\.?$/;
const MOST_NAME = 60;

/** `NAME: text`; null: a line of WhatsApp itself. */
function spokenIn(rest: string): { speaker: string; text: string } | null {
  const colon = rest.indexOf(':');
  if (colon < 1) return null;
  const speaker = rest.slice(0, colon).replace(MARKS, '').replaceAll('\u00a0', ' ').trim();
  // “Anna changed the subject to “a: b””
  if (speaker === '' || speaker.length > MOST_NAME || /[“”„"«»]/.test(speaker)) return null;
  return { speaker, text: rest.slice(colon + 1).replace(/^ /, '') };
}

/** null: nothing that somebody wrote. */
function wordsOf(text: string): string | { why: string } {
  const trimmed = text.trim();
  const written = trimmed.replace(MARKED, '').trimEnd().replace(EDITED, '');
  if (MEDIA.test(trimmed)) return { why: LEFT.media };
  // iOS marks what nobody wrote: pictures left out, calls, changes of the group.
  if (written.startsWith('\u200e') && !written.includes('\n') && !ATTACHED.test(written))
    return { why: LEFT.media };
  const words = written.replace(ATTACHED, '').replace(MARKS, '').trim();
  if (words === '') return { why: written === '' && trimmed === '' ? LEFT.empty : LEFT.media };
  return DELETED.test(words) ? { why: 'deleted messages' } : words;
}

export const whatsapp: HistoryFormat = {
  label: 'WhatsApp’s exported chat (.txt or .zip)',

  isIn: (head) =>
    head
      .split(/\r?\n/)
      .slice(0, 50)
      .some((line) => stampOf(line, null) !== null),

  async *read(files, zone) {
    const clock = wallClock(zone);
    for (const file of files) {
      const reading = await readingOf(file);
      if (reading.note !== null) yield { kind: 'note', text: reading.note };
      if (files.length > 1) yield { kind: 'chat', chat: file.name, id: '' };
      const numberOf = occurrences();
      const chat = files.length > 1 ? file.name : '';
      for await (const { stamp, text } of messagesIn(file, reading.style)) {
        yield itemOf(stamp, text, { chat, order: reading.order, clock, numberOf });
      }
    }
  },
};

/** Longer ones are cut anyway. */
const MOST_CHARS = 1_000_000;

async function* messagesIn(
  file: HistoryFile,
  style: Style | null,
): AsyncGenerator<{ stamp: Stamp; text: string }> {
  let current: Stamp | null = null;
  let text = '';
  for await (const lines of linesIn(file.bytes())) {
    for (const line of lines) {
      const stamp = stampOf(line, style);
      if (stamp === null) {
        if (text.length < MOST_CHARS) text += `\n${line}`;
        continue;
      }
      if (current !== null) yield { stamp: current, text };
      current = stamp;
      text = stamp.rest;
    }
  }
  if (current !== null) yield { stamp: current, text };
}

interface Understood {
  chat: string;
  order: Order;
  clock: (wall: Wall) => number | null;
  numberOf: ReturnType<typeof occurrences>;
}

function itemOf(stamp: Stamp, whole: string, { chat, order, clock, numberOf }: Understood): HistoryItem {
  const spoken = spokenIn(whole);
  if (spoken === null) return { kind: 'left', chat, why: LEFT.system };
  const words = wordsOf(spoken.text);
  if (typeof words !== 'string') return { kind: 'left', chat, why: words.why };
  const { hour, minute, second, parts } = stamp;
  const wall = { ...dateOf(parts, order), hour, minute, second };
  const at = clock(wall);
  if (at === null) return { kind: 'left', chat, why: LEFT.broken };
  const { speaker } = spoken;
  // Its own clock, so that another zone makes no other message of it.
  const moment = `${wall.year}-${wall.month}-${wall.day} ${hour}:${minute}:${second}`;
  const said = `${speaker}\n${words}`;
  const key = `whatsapp ${moment}\n${said}\n${numberOf(moment, said)}`;
  return { kind: 'message', key, at, chat, speaker, role: null, text: words };
}
