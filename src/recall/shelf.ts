/**
 * What ranking needs to know of every piece of one scope, in columns in memory: who said it, when, and what stands
 * before and after it. Loaded when a scope is searched, then kept up with what is added.
 */

import { indexTerms } from './words.js';

export interface PieceFacts {
  /** In the scope; messages by their ids, then lines of files. */
  piece: number;
  /** The room or file it stands in. */
  origin: number;
  /** null where nobody knows. */
  at: number | null;
  author: string;
  /** In terms. */
  length: number;
  /** Of a message: after which one it was heard. */
  heardAfter: number;
}

export interface Shelf {
  readonly size: number;
  readonly pieces: Float64Array;
  readonly origins: Int32Array;
  /** NaN where nobody knows. */
  readonly times: Float64Array;
  readonly lengths: Uint16Array;
  readonly heardAfter: Float64Array;
  readonly authors: Uint16Array;
  /** Who is meant by a term that stands in a name. */
  readonly authorsByTerm: ReadonlyMap<string, number[]>;
  readonly authorCount: number;
  /** Which stretch of conversation: the same number for pieces of one sitting. */
  readonly stretches: Int32Array;
  /** How many terms a stretch has. */
  readonly stretchLengths: readonly number[];
  readonly terms: number;
  add(facts: PieceFacts): void;
  /** Takes out what stands in a room or file. */
  remove(origin: number): void;
  /** Its place in the columns; -1 for none. */
  indexOf(piece: number): number;
  /** The one before or after it in its room or file; -1 where it is the first or last. */
  beside(index: number, direction: 1 | -1): number;
}

/** After so long a silence, a conversation is a new one. */
const SITTING_MS = 3 * 3_600_000;
/** Busy groups never fall silent, and files know no time: a stretch is no longer than this. */
const STRETCH_PIECES = 40;
/** How far to look for a neighbour past what other threads said meanwhile. */
const NEIGHBOUR_REACH = 12;
const MOST_AUTHORS = 60_000;

export function createShelf(expected: number): Shelf {
  let room = Math.max(64, Math.ceil(expected * 1.1));
  const columns = {
    pieces: new Float64Array(room),
    origins: new Int32Array(room),
    times: new Float64Array(room),
    lengths: new Uint16Array(room),
    heardAfter: new Float64Array(room),
    authors: new Uint16Array(room),
    stretches: new Int32Array(room),
  };
  const authorsByTerm = new Map<string, number[]>();
  const authorNumbers = new Map<string, number>();
  const stretchLengths: number[] = [];
  const stretchSizes: number[] = [];
  let size = 0;
  let terms = 0;

  function grow(): void {
    room *= 2;
    const grown = <T extends { set(from: T): void }>(to: T, from: T): T => {
      to.set(from);
      return to;
    };
    columns.pieces = grown(new Float64Array(room), columns.pieces);
    columns.origins = grown(new Int32Array(room), columns.origins);
    columns.times = grown(new Float64Array(room), columns.times);
    columns.lengths = grown(new Uint16Array(room), columns.lengths);
    columns.heardAfter = grown(new Float64Array(room), columns.heardAfter);
    columns.authors = grown(new Uint16Array(room), columns.authors);
    columns.stretches = grown(new Int32Array(room), columns.stretches);
  }

  function lowerBound(piece: number): number {
    let low = 0;
    let high = size;
    if (size > 0 && (columns.pieces[size - 1] ?? 0) < piece) return size;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((columns.pieces[middle] ?? 0) < piece) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  function authorNumber(name: string): number {
    const known = authorNumbers.get(name);
    if (known !== undefined) return known;
    const number = authorNumbers.size;
    if (number >= MOST_AUTHORS) return 0;
    authorNumbers.set(name, number);
    for (const term of new Set(indexTerms(name))) {
      authorsByTerm.set(term, [...(authorsByTerm.get(term) ?? []), number]);
    }
    return number;
  }

  function beside(index: number, direction: 1 | -1): number {
    const origin = columns.origins[index];
    for (let step = 1; step <= NEIGHBOUR_REACH; step++) {
      const other = index + step * direction;
      if (other < 0 || other >= size) return -1;
      if (columns.origins[other] === origin) return other;
    }
    return -1;
  }

  /** That of the one before, unless much time has passed since. */
  function stretchOf(index: number): number {
    const before = beside(index, -1);
    if (before >= 0) {
      const stretch = columns.stretches[before] ?? 0;
      const silence = (columns.times[index] ?? Number.NaN) - (columns.times[before] ?? Number.NaN);
      if (!(silence > SITTING_MS) && (stretchSizes[stretch] ?? 0) < STRETCH_PIECES) return stretch;
    }
    stretchSizes.push(0);
    return stretchLengths.push(0) - 1;
  }

  return {
    get size() {
      return size;
    },
    get pieces() {
      return columns.pieces;
    },
    get origins() {
      return columns.origins;
    },
    get times() {
      return columns.times;
    },
    get lengths() {
      return columns.lengths;
    },
    get heardAfter() {
      return columns.heardAfter;
    },
    get authors() {
      return columns.authors;
    },
    get stretches() {
      return columns.stretches;
    },
    authorsByTerm,
    get authorCount() {
      return authorNumbers.size;
    },
    stretchLengths,
    get terms() {
      return terms;
    },

    add(facts) {
      const index = lowerBound(facts.piece);
      if (index < size && columns.pieces[index] === facts.piece) return;
      if (size === room) grow();
      if (index < size)
        for (const column of Object.values(columns)) column.copyWithin(index + 1, index, size);
      size++;
      const length = Math.min(facts.length, 65_535);
      columns.pieces[index] = facts.piece;
      columns.origins[index] = facts.origin;
      columns.times[index] = facts.at ?? Number.NaN;
      columns.lengths[index] = length;
      columns.heardAfter[index] = facts.heardAfter;
      columns.authors[index] = authorNumber(facts.author);
      const stretch = stretchOf(index);
      columns.stretches[index] = stretch;
      stretchLengths[stretch] = (stretchLengths[stretch] ?? 0) + length;
      stretchSizes[stretch] = (stretchSizes[stretch] ?? 0) + 1;
      terms += length;
    },

    remove(origin) {
      let kept = 0;
      for (let index = 0; index < size; index++) {
        if (columns.origins[index] === origin) {
          const stretch = columns.stretches[index] ?? 0;
          const length = columns.lengths[index] ?? 0;
          stretchLengths[stretch] = (stretchLengths[stretch] ?? 0) - length;
          terms -= length;
          continue;
        }
        if (kept < index)
          for (const column of Object.values(columns)) column.copyWithin(kept, index, index + 1);
        kept++;
      }
      size = kept;
    },

    indexOf(piece) {
      const index = lowerBound(piece);
      return index < size && columns.pieces[index] === piece ? index : -1;
    },

    beside,
  };
}
