/**
 * Splits a styled text into messages: at the last paragraph that fits, else line, else word, else inside a word; not
 * within a link, code span or fence that fits into one. A mark across a cut is closed and reopened. Only whitespace
 * at a cut is dropped; within a fence only blank lines and trailing whitespace are, so indentation stays.
 */
import type { Mark, Part } from '../../core/channel.js';
import { once } from '../../core/concurrency.js';
import { cutAt } from '../../core/cut.js';

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

/** Splits a whole reply; blank text gives no parts. `marks` must be sorted by offset. */
export function cut({ text, marks }: Part, limits: MessageLimits): Part[] {
  const { limit, maxMarks = Number.POSITIVE_INFINITY, measure } = limits;
  const ranges = { fences: rangesOf(marks, ['pre']), unbroken: rangesOf(marks, ['link', 'code']) };
  const end = text.trimEnd().length;
  const parts: Part[] = [];
  /** Marks that a cut splits, and the first mark not yet used. */
  let carried: Mark[] = [];
  let next = 0;
  /** Ratio of the last piece's measured length to its text: the estimate for the next. */
  let growth = 1;

  /** `to`: its end in the whole text, whitespace included. */
  function pieceOf(start: number, room: number) {
    const to = positionToCut(text, start, end, room, limit, ranges);
    const shown = text.slice(start, to).trimEnd();
    const here = [...carried, ...startingBefore(to)];
    return { to, part: { text: shown, marks: within(here, start, start + shown.length) } };
  }

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
  function pieceAt(start: number) {
    if (measure === undefined) return pieceOf(start, roomAt(start, limit));
    const rest = end - start;
    let room = roomAt(start, rest <= limit ? limit : Math.floor(limit / growth));
    let fits: ReturnType<typeof pieceOf> | null = null;
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

  for (let start = skipBlank(text, 0, ranges.fences); start < end; ) {
    const piece = pieceAt(start);
    if (piece.part.text !== '') parts.push(piece.part);
    const started = startingBefore(piece.to);
    next += started.length;
    carried = [...carried, ...started].filter((mark) => mark.offset + mark.length > piece.to);
    start = skipBlank(text, piece.to, ranges.fences);
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
  const fence = fences.find(({ start, end }) => start <= at && at < end);
  return fence === undefined ? at : Math.max(line, fence.start);
}

interface Range {
  start: number;
  end: number;
}

export const graphemes = once(() => new Intl.Segmenter(undefined, { granularity: 'grapheme' }));

/** End of the piece that begins at `start`; always after it. Every search stays within the room. */
function positionToCut(
  text: string,
  start: number,
  end: number,
  room: number,
  limit: number,
  ranges: { fences: Range[]; unbroken: Range[] },
): number {
  const last = start + room;
  if (end <= last) return end;
  const isNear = (range: Range) => range.end > start && range.start < last;
  const unbroken = ranges.unbroken.filter(isNear);
  const fences = ranges.fences.filter(isNear);
  const all = [...fences, ...unbroken];

  function lastWhere(isEnd: (at: number) => boolean, whole: Range[]): number | null {
    for (let at = last; at > start; at -= 1) {
      if (isEnd(at) && brokenBy(whole, at) === undefined) return at;
    }
    return null;
  }
  const paragraph = (at: number) => text.startsWith('\n\n', at);
  const line = (at: number) => text.startsWith('\n', at);
  const word = (at: number) => /\s/.test(text.charAt(at));

  // A fence that must be cut anyway begins in this message, right after its introduction.
  const cutAnyway = brokenBy(fences, last);
  if (cutAnyway !== undefined && cutAnyway.end - cutAnyway.start > limit) {
    const before = lastWhere(line, unbroken);
    if (before !== null && before > cutAnyway.start) return before;
  }
  const between =
    lastWhere(paragraph, all) ??
    lastWhere(line, all) ??
    lastWhere(line, unbroken) ??
    lastWhere(word, unbroken);
  if (between !== null) return between;
  // Before a link, code span or fence that began in this piece; else between two graphemes.
  const broken = brokenBy(all, last);
  return broken !== undefined && broken.start > start ? broken.start : withinWord(text, start, last);
}

/** The range that a cut before `position` would split. */
function brokenBy(ranges: Range[], position: number): Range | undefined {
  return ranges.find(({ start, end }) => start < position && position < end);
}

/** In units; far longer than any grapheme worth keeping whole (a family emoji has 11). */
const LOOK_BACK = 100;

/** Between two graphemes; in one without an end between two code points. */
function withinWord(text: string, start: number, last: number): number {
  const from = cutAt(text, Math.max(start, last - LOOK_BACK)).length;
  let boundary = from;
  for (const { index } of graphemes().segment(text.slice(from, last + LOOK_BACK))) {
    if (from + index > last) break;
    boundary = from + index;
  }
  return boundary > from ? boundary : cutAt(text, last).length;
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
