/**
 * A styled text to messages, each within a platform's limit. It is cut at the last paragraph that fits, else the
 * last line, else the last word, and only then inside a word; never inside a surrogate pair, and not inside a
 * link, a code span or a fence that fits into one message. A mark over a cut is closed and opened again.
 *
 * The law: everything but whitespace is in exactly one part, in order. (At a cut whitespace is dropped; within a fence only whole
 * blank lines and the whitespace at the end of a line: indentation stays.)
 */
import type { Mark, Part } from '../../core/channel.js';
import { once } from '../../core/concurrency.js';

export interface MessageLimits {
  /** In units of text, or as `measure` counts. At least 2, since a surrogate pair is not halved. */
  limit: number;
  /** How many marks one message may carry. */
  maxMarks?: number;
  /**
   * How long a part is on the platform, if that is not the length of its text: its marks count, say, or a letter of
   * two units counts once. What two units of text come to must be within the limit.
   */
  measure?: (part: Part) => number;
}

/** Room that is larger by less than this is not tried. */
const WORTH_A_TRY = 1.05;
const MOST_TRIES = 8;

interface CutPiece {
  part: Part;
  /** Where it ends in the whole text, whitespace included. */
  to: number;
}

/** A whole reply as parts; blank text gives none. `marks` are in the order of their offsets. */
export function cut({ text, marks }: Part, limits: MessageLimits): Part[] {
  const { limit, maxMarks = Number.POSITIVE_INFINITY, measure } = limits;
  const fences = rangesOf(marks, ['pre']);
  const unbroken = rangesOf(marks, ['link', 'code']);
  const end = text.trimEnd().length;
  const parts: Part[] = [];
  /** Marks that a cut goes through, and the first that nothing was taken of yet. */
  let carried: Mark[] = [];
  let next = 0;
  /** How much longer than its text the last piece was on the platform: so the next may be. */
  let growth = 1;

  function pieceOf(start: number, room: number): CutPiece {
    const to = positionToCut(text, { start, end, room, limit, fences, unbroken });
    const shown = text.slice(start, to).trimEnd();
    const here = [...carried, ...startingBefore(to)];
    return { to, part: { text: shown, marks: within(here, start, start + shown.length) } };
  }

  /** Of the marks that nothing was taken of yet. */
  function startingBefore(to: number): Mark[] {
    let after = next;
    while ((marks[after]?.offset ?? end) < to) after += 1;
    return marks.slice(next, after);
  }

  /** As much as `most`, or as little as keeps the marks from being too many. */
  function roomAt(start: number, most: number): number {
    const first = marks[next + Math.max(0, maxMarks - carried.length)];
    return first === undefined ? most : Math.max(2, Math.min(most, first.offset - start));
  }

  /** As much as fits, or little less. Each try is rendered to be measured, so they are few. */
  function pieceAt(start: number): CutPiece {
    if (measure === undefined) return pieceOf(start, roomAt(start, limit));
    const rest = end - start;
    let room = roomAt(start, rest <= limit ? limit : Math.floor(limit / growth));
    let fits: CutPiece | null = null;
    for (let tries = 0; ; tries += 1) {
      const piece = pieceOf(start, room);
      const size = measure(piece.part);
      const taken = Math.min(room, piece.to - start);
      const likely = Math.floor((taken * limit) / Math.max(1, size));
      growth = Math.max(0.5, size / Math.max(1, piece.part.text.length));
      if (size <= limit) {
        fits = piece;
        const more = roomAt(start, Math.min(2 * limit, likely));
        if (piece.to >= end || more < room * WORTH_A_TRY || tries >= MOST_TRIES) return piece;
        room = more;
      } else {
        if (fits !== null || room <= 2) return fits ?? piece;
        // As if all of it grew to the same degree; then, close to the limit, by what is too much.
        const tooMuch = size - limit;
        room = Math.max(2, Math.min(taken - 1, tries > 0 && tooMuch < taken / 2 ? taken - tooMuch : likely));
      }
    }
  }

  for (let start = skipBlank(text, 0, fences); start < end; ) {
    const piece = pieceAt(start);
    if (piece.part.text !== '') parts.push(piece.part);
    const started = startingBefore(piece.to);
    next += started.length;
    carried = [...carried, ...started].filter((mark) => mark.offset + mark.length > piece.to);
    start = skipBlank(text, piece.to, fences);
  }
  return parts;
}

/** The part of each mark that is in this piece, with offsets from its beginning. */
function within(marks: Mark[], start: number, end: number): Mark[] {
  const inside: Mark[] = [];
  for (const mark of marks) {
    const from = Math.max(mark.offset, start);
    const to = Math.min(mark.offset + mark.length, end);
    if (from < to) inside.push({ ...mark, offset: from - start, length: to - from });
  }
  return inside;
}

/** Where the next piece begins. In a fence the indentation of its first line stays. */
function skipBlank(text: string, from: number, fences: Range[]): number {
  let line = from;
  let at = from;
  for (; at < text.length && /\s/.test(text.charAt(at)); at += 1) {
    if (text.charAt(at) === '\n') line = at + 1;
  }
  const fence = rangeAt(fences, at);
  return fence === undefined ? at : Math.max(line, fence.start);
}

interface Range {
  start: number;
  end: number;
}

interface CutWindow {
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
function positionToCut(text: string, { start, end, room, limit, fences, unbroken }: CutWindow): number {
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
function rangesOf(marks: Mark[], kinds: Mark['kind'][]): Range[] {
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
function rangeAt(ranges: Range[], position: number): Range | undefined {
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
