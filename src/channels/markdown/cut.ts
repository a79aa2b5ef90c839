/**
 * A styled text to messages, each within a platform's limit. It is cut at the last paragraph that fits, else the
 * last line, else the last word, and only then inside a word; never inside a surrogate pair, and not inside a
 * link, a code span or a fence that fits into one message. A mark over a cut is closed and opened again.
 *
 * The law: everything but whitespace is in exactly one part, in order. (At a cut whitespace is dropped; within a fence only whole
 * blank lines and the whitespace at the end of a line: indentation stays.)
 */
import type { Mark, Part } from '../../core/channel.js';
import { positionToCut, type Range, rangeAt, rangesOf } from './cut-position.js';

export interface Limits {
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

interface Piece {
  part: Part;
  /** Where it ends in the whole text, whitespace included. */
  to: number;
}

/** A whole reply as parts; blank text gives none. `marks` stand in the order of their offsets. */
export function cut({ text, marks }: Part, limits: Limits): Part[] {
  const { limit, maxMarks = Number.POSITIVE_INFINITY, measure } = limits;
  // The short way for most chat replies: there is nothing to cut.
  if (marks.length === 0 && text.length <= limit && measure === undefined) {
    const shown = text.trim();
    return shown === '' ? [] : [{ text: shown, marks: [] }];
  }
  const fences = rangesOf(marks, ['pre']);
  const unbroken = rangesOf(marks, ['link', 'code']);
  const end = text.trimEnd().length;
  const parts: Part[] = [];
  /** Marks that a cut goes through, and the first that nothing was taken of yet. */
  let carried: Mark[] = [];
  let next = 0;
  /** How much longer than its text the last piece was on the platform: so the next may be. */
  let growth = 1;

  function pieceOf(start: number, room: number): Piece {
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
  function pieceAt(start: number): Piece {
    if (measure === undefined) return pieceOf(start, roomAt(start, limit));
    const rest = end - start;
    let room = roomAt(start, rest <= limit ? limit : Math.floor(limit / growth));
    let fits: Piece | null = null;
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
