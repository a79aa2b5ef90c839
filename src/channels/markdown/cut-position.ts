/**
 * Where to cut: the best position within a room, in the order at the top of `cut.ts`, with the stretches of a text that
 * should stay in one piece.
 */
import type { Mark } from '../../core/channel.js';
import { once } from '../../core/once.js';

export interface Range {
  start: number;
  end: number;
}

export interface Room {
  start: number;
  /** Where the text ends. */
  end: number;
  /** How much of it may be taken. */
  room: number;
  /** What fits into one message. */
  limit: number;
  fences: Range[];
  /** Links and code spans. */
  unbroken: Range[];
}

const graphemes = once(() => new Intl.Segmenter(undefined, { granularity: 'grapheme' }));

/** The end of the piece that begins at `start`: always after it. Every search stays within the room. */
export function positionToCut(text: string, { start, end, room, limit, fences, unbroken }: Room): number {
  const last = start + room;
  if (end <= last) return end;
  const window = text.slice(start, last + 2);

  function lastOf(needle: string, whole: Range[][]): number | null {
    for (let at = window.lastIndexOf(needle, room); at > 0; ) {
      const broken = brokenBy(whole, start + at);
      if (broken === undefined) return start + at;
      const before = broken.start - start;
      at = before > 0 ? window.lastIndexOf(needle, before) : 0;
    }
    return null;
  }

  // A fence that must be cut anyway begins in this message, right after what introduces it.
  const cutAnyway = rangeBrokenAt(fences, last);
  if (cutAnyway !== undefined && cutAnyway.end - cutAnyway.start > limit) {
    const line = lastOf('\n', [unbroken]);
    if (line !== null && line > cutAnyway.start) return line;
  }
  return (
    lastOf('\n\n', [fences, unbroken]) ??
    lastOf('\n', [fences, unbroken]) ??
    lastOf('\n', [unbroken]) ??
    lastSpace(text, start, last, unbroken) ??
    withinWord(text, start, last, [fences, unbroken])
  );
}

function brokenBy(whole: Range[][], position: number): Range | undefined {
  for (const ranges of whole) {
    const broken = rangeBrokenAt(ranges, position);
    if (broken !== undefined) return broken;
  }
  return undefined;
}

function lastSpace(text: string, start: number, last: number, unbroken: Range[]): number | null {
  for (let at = last; at > start; at -= 1) {
    if (/\s/.test(text.charAt(at)) && rangeBrokenAt(unbroken, at) === undefined) return at;
  }
  return null;
}

/** Before a link, code span or fence that began in this piece; else between two letters as people see them. */
function withinWord(text: string, start: number, last: number, whole: Range[][]): number {
  const broken = brokenBy(whole, last);
  if (broken !== undefined && broken.start > start) return broken.start;
  return betweenGraphemes(text, start, last) ?? betweenCodePoints(text, last);
}

/** Far longer than any grapheme worth keeping whole: a family of emoji has 11 units. */
const LOOK_BACK = 100;

function betweenGraphemes(text: string, start: number, last: number): number | null {
  const from = betweenCodePoints(text, Math.max(start, last - LOOK_BACK));
  let boundary = from;
  for (const { index } of graphemes().segment(text.slice(from, last + LOOK_BACK))) {
    if (from + index > last) break;
    boundary = from + index;
  }
  return boundary > from ? boundary : null;
}

function betweenCodePoints(text: string, position: number): number {
  const halves = isHigh(text.charCodeAt(position - 1)) && isLow(text.charCodeAt(position));
  return halves ? position - 1 : position;
}

function isHigh(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

function isLow(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}

/** Where marks of these kinds are: in order, and of those inside each other the outermost. */
export function rangesOf(marks: Mark[], kinds: Mark['kind'][]): Range[] {
  const ranges: Range[] = [];
  for (const mark of marks) {
    const last = ranges.at(-1);
    if (kinds.includes(mark.kind) && mark.offset >= (last?.end ?? 0)) {
      ranges.push({ start: mark.offset, end: mark.offset + mark.length });
    }
  }
  return ranges;
}

/** The range that the character at `position` is in. */
export function rangeAt(ranges: Range[], position: number): Range | undefined {
  let low = 0;
  let high = ranges.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((ranges[middle]?.end ?? 0) <= position) low = middle + 1;
    else high = middle;
  }
  const range = ranges[low];
  return range !== undefined && range.start <= position ? range : undefined;
}

/** The range that a cut before `position` would break in two. */
function rangeBrokenAt(ranges: Range[], position: number): Range | undefined {
  const range = rangeAt(ranges, position);
  return range !== undefined && range.start < position ? range : undefined;
}
