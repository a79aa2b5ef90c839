/**
 * Splits a styled text into messages within a platform's limit: at the last paragraph that fits, else the
 * last line, else the last word, else inside a word. Never splits a surrogate pair, nor a link, code span or
 * fence that fits into one message. A mark across a cut is closed and reopened.
 *
 * Invariant: everything but whitespace is in exactly one part, in order. Whitespace at a cut is dropped;
 * within a fence only blank lines and trailing whitespace are, so indentation stays.
 */
import type { Mark, Part } from '../../core/channel.js';
import { once } from '../../core/concurrency.js';

export interface MessageLimits {
  /** In UTF-16 units, or as `measure` counts. At least 2, since a surrogate pair is never split. */
  limit: number;
  maxMarks?: number;
  /** Length on the platform. Default: that of the text. Two units of text must fit within the limit. */
  measure?: (part: Part) => number;
}

/** A retry needs at least this much more room to be worth it. */
const WORTH_A_TRY = 1.05;
const MOST_TRIES = 8;

interface CutPiece {
  part: Part;
  /** End offset in the whole text, whitespace included. */
  to: number;
}

/** Splits a whole reply; blank text gives no parts. `marks` must be sorted by offset. */
export function cut({ text, marks }: Part, limits: MessageLimits): Part[] {
  const { limit, maxMarks = Number.POSITIVE_INFINITY, measure } = limits;
  const fences = rangesOf(marks, ['pre']);
  const unbroken = rangesOf(marks, ['link', 'code']);
  const end = text.trimEnd().length;
  const parts: Part[] = [];
  /** Marks that a cut splits, and the first mark not yet used. */
  let carried: Mark[] = [];
  let next = 0;
  /** Ratio of the last piece's measured length to its text: the estimate for the next. */
  let growth = 1;

  function pieceOf(start: number, room: number): CutPiece {
    const to = positionToCut(text, { start, end, room, limit, fences, unbroken });
    const shown = text.slice(start, to).trimEnd();
    const here = [...carried, ...startingBefore(to)];
    return { to, part: { text: shown, marks: within(here, start, start + shown.length) } };
  }

  /** Only among the marks not used yet. */
  function startingBefore(to: number): Mark[] {
    let after = next;
    while ((marks[after]?.offset ?? end) < to) after += 1;
    return marks.slice(next, after);
  }

  /** At most `most`; less where there would be too many marks. */
  function roomAt(start: number, most: number): number {
    const first = marks[next + Math.max(0, maxMarks - carried.length)];
    return first === undefined ? most : Math.max(2, Math.min(most, first.offset - start));
  }

  /** The longest piece that fits, or slightly less. Measuring renders the piece, so tries are few. */
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
        // First scale the whole piece; close to the limit, subtract the excess.
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

/** The part of each mark inside this piece, with offsets relative to the piece. */
function within(marks: Mark[], start: number, end: number): Mark[] {
  const inside: Mark[] = [];
  for (const mark of marks) {
    const from = Math.max(mark.offset, start);
    const to = Math.min(mark.offset + mark.length, end);
    if (from < to) inside.push({ ...mark, offset: from - start, length: to - from });
  }
  return inside;
}

/** Where the next piece begins. Inside a fence, the first line's indentation stays. */
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
  end: number;
  room: number;
  limit: number;
  fences: Range[];
  /** Links and code spans. */
  unbroken: Range[];
}

const graphemes = once(() => new Intl.Segmenter(undefined, { granularity: 'grapheme' }));

/** End of the piece that begins at `start`; always after it. Every search stays within the room. */
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

  // A fence that must be cut anyway begins in this message, right after its introduction.
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

/** Before a link, code span or fence that began in this piece; else between two graphemes. */
function withinWord(text: string, start: number, last: number, whole: Range[][]): number {
  const broken = brokenBy(whole, last);
  if (broken !== undefined && broken.start > start) return broken.start;
  return betweenGraphemes(text, start, last) ?? betweenCodePoints(text, last);
}

/** In units; far longer than any grapheme worth keeping whole (a family emoji has 11). */
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

/** Ranges of marks of these kinds, in order; of nested ones only the outermost. */
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

/** The range that a cut before `position` would split. */
function rangeBrokenAt(ranges: Range[], position: number): Range | undefined {
  const range = rangeAt(ranges, position);
  return range !== undefined && range.start < position ? range : undefined;
}
