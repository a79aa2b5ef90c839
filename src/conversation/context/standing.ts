/**
 * Step 4 of the route: which memory stands in the system prompt, and what is said beside it. Model servers keep what
 * they have read as long as a request begins as the last one did, so memory stands there as it was when the window
 * began; what has changed since is told at the end of the request. Pure; why it is so: docs/decisions/0020.
 */
import { daysOf, type MemorySnapshot, type SeenTier, type Tier } from '../../core/memory.js';
import { block, fenced, type Origin } from '../../core/origin.js';

/** A persona's memory as a prompt can show it. */
export interface MemoryShown {
  memory: MemorySnapshot;
  dailyLog: string;
  origin: Origin;
}

/** What the requests of a window begin with. */
export interface Standing {
  /** The system prompt up to the memory, and the persona's own model that reads it. */
  frame: string;
  reader: string | null;
  shown: MemoryShown;
  /** Of the last request. */
  usedAt: number;
}

/** No cache without a fee keeps a prefix for longer than this when nobody asks for it. */
const CACHE_LIVES_MS = 10 * 60_000;

const TIERS: readonly Tier[] = [1, 2, 3];

export interface StandingAsk extends Omit<Standing, 'shown' | 'usedAt'> {
  now: number;
  current: MemoryShown;
  dailyMaxChars: number;
}

/** What stands in the system prompt, and what is told at the end; empty when nothing has changed. */
export function standingMemory(
  held: Standing | null,
  { frame, reader, now, current, dailyMaxChars }: StandingAsk,
): { standing: Standing; changes: string } {
  const afresh = { standing: { frame, reader, shown: current, usedAt: now }, changes: '' };
  // Where the frame has changed, the server reads all behind it anew in any case.
  if (held === null || held.frame !== frame || held.reader !== reader) return afresh;
  if (now - held.usedAt > CACHE_LIVES_MS) return afresh;
  const tiers = changedTiers(held.shown.memory, current.memory);
  const days = changedDays(held.shown.dailyLog, current.dailyLog, dailyMaxChars);
  if (tiers === null || days === null) return afresh;
  const changes = [...tiers, ...days].join('\n\n');
  // What is told at the end is read anew in every request: beyond this a new beginning costs less.
  if (changes.length > frame.length + held.shown.memory.text.length + held.shown.dailyLog.length)
    return afresh;
  return { standing: { ...held, usedAt: now }, changes };
}

/** For the last user message; empty without changes. */
export function memoryNow(changes: string): string {
  if (changes === '') return '';
  return (
    '(Not said by anybody: your memory has changed since the conversation began. What stands here holds, in place of what is written further up; what it no longer names is gone.)\n' +
    `${block('memory_now', changes)}\n`
  );
}

/** Each changed tier in full; null when it cannot be told by tiers. */
function changedTiers(before: MemorySnapshot, now: MemorySnapshot): string[] | null {
  if (before.text === now.text) return [];
  const rest = besideTiers(now);
  if (rest === null || rest !== besideTiers(before)) return null;
  return TIERS.flatMap((tier) => {
    const text = textOf(now.seen[tier]) ?? '';
    if (text === textOf(before.seen[tier])) return [];
    return [text === '' ? `Tier ${tier} is empty now.` : `Tier ${tier}, whole:\n\n${fenced(text)}`];
  });
}

/** The text of the file around its tiers; null when a tier is cut, or not where it is expected. */
function besideTiers({ text, seen }: MemorySnapshot): string | null {
  const pieces: string[] = [];
  let from = 0;
  for (const tier of TIERS) {
    const words = textOf(seen[tier]);
    if (words === null) return null;
    const at = text.indexOf(words, from);
    if (at < 0) return null;
    pieces.push(text.slice(from, at));
    from = at + words.length;
  }
  pieces.push(text.slice(from));
  return pieces
    .join('\n')
    .split('\n')
    .filter((line) => line.trim() !== '' && !/^ {0,3}#{1,2}\s+(memory|tier\b.*)$/i.test(line))
    .join('\n');
}

/** null: it is cut. */
function textOf(seen: SeenTier): string | null {
  return 'text' in seen ? seen.text : null;
}

/** The new lines of each day; a day that was changed otherwise, whole. null when a day is gone, or all is too much. */
function changedDays(before: string, now: string, most: number): string[] | null {
  if (before === now) return [];
  const known = daysByDate(before);
  const days = daysByDate(now);
  if ([...known.keys()].some((date) => !days.has(date))) return null;
  const changed = [...days].flatMap(([date, text]) => {
    const old = known.get(date);
    if (old === text) return [];
    if (old !== undefined && text.startsWith(`${old}\n`)) {
      return [`New in the daily log of ${date}:\n\n${fenced(text.slice(old.length).trim())}`];
    }
    return [`The daily log of ${date}, whole:\n\n${fenced(text)}`];
  });
  return before.length + changed.join('').length > most ? null : changed;
}

/** A line of a day that looks like another day's heading only divides it. */
function daysByDate(log: string): Map<string, string> {
  const days = new Map<string, string>();
  for (const { date, text } of daysOf(log)) {
    days.set(date, [days.get(date), text].filter((part) => part !== undefined).join('\n'));
  }
  return days;
}
