/** Macros of character cards: `{{char}}`, `{{random:A,B}}`, … One pass from inside out; a value is never read again. Pure. */
import { createHash } from 'node:crypto';
import { weekday, type Zone } from './dates.js';

export interface MacroValues {
  char: string;
  user: string;
  /** The gateway's own text at this place. */
  original?: string;
  /** From 0 up to 1. */
  random(): number;
  now: number;
  zone: Zone;
  /** Since somebody last wrote; null: nobody has. */
  idleMs: number | null;
  /** `{{pick}}` is the same for the same key. */
  key: string;
}

export interface Expanded {
  text: string;
  /** The words of `{{hidden_key}}`, which only a recursive scan sees. */
  hidden: string[];
}

/** Written by the card, or a value, in which commas and colons mean nothing. */
interface Piece {
  text: string;
  isValue?: true;
}

interface Frame {
  pieces: Piece[];
  /** Where it was opened, for `{{pick}}`. */
  at: number;
}

/** Deeper ones stay as they are. */
const MOST_LEVELS = 10;
const SIGNS = /\{\{(?!\{)|\}\}|<(?:bot|char|user)>/gi;

export function expand(text: string, values: MacroValues): string {
  return expandAll(text, values).text;
}

export function expandAll(text: string, values: MacroValues): Expanded {
  const hidden: string[] = [];
  if (!text.includes('{{') && !text.includes('<')) return { text, hidden };
  const stack: Frame[] = [{ pieces: [], at: 0 }];
  const top = () => stack.at(-1) as Frame;
  let from = 0;
  for (const { 0: sign, index } of text.matchAll(SIGNS)) {
    put(top(), [{ text: text.slice(from, index) }]);
    from = index + sign.length;
    if (sign === '{{') {
      stack.push({ pieces: [], at: index });
      if (stack.length > MOST_LEVELS) put(stack[0] as Frame, asWritten(stack.splice(1, 1)));
    } else if (sign !== '}}') {
      put(top(), [{ text: /user/i.test(sign) ? values.user : values.char, isValue: true }]);
    } else if (stack.length === 1) {
      put(top(), [{ text: sign }]);
    } else {
      const frame = stack.pop() as Frame;
      const value = macroValue(frame, values, hidden);
      if (value === TRIM) {
        trimEnd(top().pieces);
        while (isLineEnd(text[from])) from++;
      } else put(top(), value ?? [...asWritten([frame]), { text: sign }]);
    }
  }
  put(top(), [{ text: text.slice(from) }]);
  const [whole, ...open] = stack as [Frame, ...Frame[]];
  put(whole, asWritten(open));
  return { text: joined(whole.pieces), hidden };
}

function put({ pieces }: Frame, added: readonly Piece[]): void {
  for (const piece of added) if (piece.text !== '') pieces.push(piece);
}

/** Macros that are unknown, too deep or never closed. */
function asWritten(frames: readonly Frame[]): Piece[] {
  return frames.flatMap(({ pieces }) => [{ text: '{{' }, ...pieces]);
}

function isLineEnd(sign: string | undefined): boolean {
  return sign === '\n' || sign === '\r';
}

const TRIM = 'trim';

function joined(pieces: readonly Piece[]): string {
  return pieces.map(({ text }) => text).join('');
}

/** null: it is unknown. */
function macroValue(
  { pieces, at }: Frame,
  values: MacroValues,
  hidden: string[],
): Piece[] | typeof TRIM | null {
  const { name, sign, argument } = parsed(pieces);
  const one = (text: string): Piece[] => [{ text, isValue: true }];
  if (name.startsWith('//')) return [];
  if (sign === '') {
    if (name === 'trim') return TRIM;
    const plain = PLAIN[name]?.(values);
    if (plain !== undefined) return one(plain);
  }
  switch (sign === '' && !name.startsWith('roll ') ? '' : name.split(' ')[0]) {
    case 'comment':
      return [];
    case 'hidden_key':
      hidden.push(unescapedCommas(joined(argument)));
      return [];
    case 'reverse':
      return one([...unescapedCommas(joined(argument))].reverse().join(''));
    case 'random': {
      const choices = choicesIn(argument, sign);
      return choices[Math.min(choices.length - 1, Math.floor(values.random() * choices.length))] ?? [];
    }
    case 'pick': {
      const choices = choicesIn(argument, sign);
      const digest = createHash('sha256')
        .update(`${values.key}\n${at}\n${joined(argument)}`)
        .digest();
      return choices[digest.readUInt32BE() % choices.length] ?? [];
    }
    case 'roll': {
      const rolled = roll(sign === '' ? name.slice('roll '.length) : joined(argument), values.random);
      return rolled === null ? null : one(String(rolled));
    }
    default:
      return null;
  }
}

const PLAIN: Record<string, ((values: MacroValues) => string) | undefined> = {
  __proto__: null as never,
  char: ({ char }) => char,
  user: ({ user }) => user,
  original: ({ original }) => original ?? '',
  newline: () => '\n',
  time: ({ zone, now }) => zone.time(now).slice(11),
  date: ({ zone, now }) => zone.time(now).slice(0, 10),
  weekday: ({ zone, now }) => weekday(zone.time(now).slice(0, 10)),
  idle_duration: ({ idleMs }) => inWords(idleMs),
};

/** The name ends at the first colon that the card wrote itself. */
function parsed(pieces: readonly Piece[]): { name: string; sign: '' | ':' | '::'; argument: Piece[] } {
  const [first, ...others] = pieces;
  if (first === undefined || first.isValue) return { name: '', sign: '', argument: [] };
  const colon = first.text.indexOf(':');
  if (colon < 0) {
    const name = first.text.trim().toLowerCase();
    // `{{user{{char}}}}` is no name.
    return { name: others.length === 0 || name.startsWith('//') ? name : '', sign: '', argument: [] };
  }
  const sign = first.text[colon + 1] === ':' ? '::' : ':';
  const rest = { text: first.text.slice(colon + sign.length) };
  return { name: first.text.slice(0, colon).trim().toLowerCase(), sign, argument: [rest, ...others] };
}

/** Double colons divide where there are any, as SillyTavern does; else commas. */
function choicesIn(argument: readonly Piece[], sign: string): Piece[][] {
  const isDouble = argument.some(({ text, isValue }) => !isValue && text.includes('::'));
  const divider = sign === '::' && isDouble ? '::' : /(?<!\\),/;
  const choices: Piece[][] = [[]];
  for (const piece of argument) {
    if (piece.isValue) {
      choices.at(-1)?.push(piece);
      continue;
    }
    piece.text.split(divider).forEach((text, n) => {
      if (n > 0) choices.push([]);
      choices.at(-1)?.push({ text: unescapedCommas(text) });
    });
  }
  return choices.map(trimmed);
}

function trimmed(pieces: readonly Piece[]): Piece[] {
  return pieces.map((piece, n): Piece => {
    if (piece.isValue) return piece;
    const start = n === 0 ? piece.text.trimStart() : piece.text;
    return { text: n === pieces.length - 1 ? start.trimEnd() : start, isValue: true };
  });
}

function unescapedCommas(text: string): string {
  return text.replaceAll('\\,', ',');
}

/** Line ends before `{{trim}}`. */
function trimEnd(pieces: Piece[]): void {
  for (let last = pieces.pop(); last !== undefined; last = pieces.pop()) {
    let end = last.text.length;
    while (isLineEnd(last.text[end - 1])) end--;
    if (end === 0) continue;
    pieces.push({ ...last, text: last.text.slice(0, end) });
    return;
  }
}

const MOST_DICE = 100;
const MOST_SIDES = 1_000_000;

/** `6`, `d6`, `2d6`, `2d6+1`; null if it is something else. */
function roll(formula: string, random: () => number): number | null {
  const [all, count = '', sides = '', plus = '0'] =
    /^(?:(\d{0,3})d)?(\d{1,7})([+-]\d{1,6})?$/i.exec(formula.replaceAll(/\s/g, '')) ?? [];
  const dice = count === '' ? 1 : Number(count);
  if (all === undefined || dice > MOST_DICE || Number(sides) < 1 || Number(sides) > MOST_SIDES) return null;
  let sum = Number(plus);
  for (let n = 0; n < dice; n++) sum += 1 + Math.floor(random() * Number(sides));
  return sum;
}

const UNITS: [name: string, ms: number][] = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
];

function inWords(ms: number | null): string {
  const [unit, size] = UNITS.find(([, each]) => ms !== null && ms >= each) ?? [];
  if (ms === null || unit === undefined || size === undefined) return 'just now';
  const count = Math.floor(ms / size);
  return `${count} ${unit}${count === 1 ? '' : 's'}`;
}

/** The same numbers for the same seed. */
export function seededRandom(seed: string): () => number {
  let n = 0;
  return () => createHash('sha256').update(`${seed}\n${n++}`).digest().readUInt32BE() / 2 ** 32;
}
