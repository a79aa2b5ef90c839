/**
 * What somebody wants forgotten, as words to be found again in files and in the store: letter case, the kind and
 * amount of white space and the form of composed letters make no difference.
 */

/** Stands where something was forgotten. No phrase reaches into it, so that forgetting twice is forgetting once. */
export const FORGOTTEN = '[forgotten]';

export interface Place {
  /** Offsets of its first character and of the first one behind it. */
  start: number;
  end: number;
}

export interface Phrase {
  /** As the person wrote it, trimmed. */
  text: string;
  isIn(words: string): boolean;
  /** Where it stands in the words, in their order. */
  placesIn(words: string): Place[];
  /** The same words with something else in the phrase's place; the very string where it does not stand in it. */
  replacedIn(words: string, by: string): string;
}

const SPACE = '[\\s\\u0085]';

/** Throws RangeError for a text without anything to look for. */
export function phraseOf(text: string): Phrase {
  const parts = text
    .normalize('NFC')
    .split(new RegExp(`${SPACE}+`, 'u'))
    .filter((part) => part !== '');
  if (parts.length === 0) throw new RangeError('a phrase needs words');
  const source = parts.map(literal).join(`${SPACE}+`);
  return { text: text.trim(), isIn, placesIn, replacedIn };

  function* find(composed: string): Generator<Place> {
    let at = 0;
    for (const stretch of composed.split(FORGOTTEN)) {
      for (const { 0: found, index } of stretch.matchAll(new RegExp(source, 'giu'))) {
        yield { start: at + index, end: at + index + found.length };
      }
      at += stretch.length + FORGOTTEN.length;
    }
  }

  function isIn(words: string): boolean {
    return find(words.normalize('NFC')).next().done !== true;
  }

  function placesIn(words: string): Place[] {
    const { composed, original } = compose(words);
    const places: Place[] = [];
    for (const found of find(composed)) {
      const place = original(found);
      const last = places.at(-1);
      // Two that stand in one composed letter.
      if (last !== undefined && place.start < last.end) last.end = Math.max(last.end, place.end);
      else places.push(place);
    }
    return places;
  }

  function replacedIn(words: string, by: string): string {
    let replaced = '';
    let done = 0;
    for (const { start, end } of placesIn(words)) {
      replaced += words.slice(done, start) + by;
      done = end;
    }
    return done === 0 ? words : replaced + words.slice(done);
  }
}

function literal(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/]/gu, '\\$&');
}

/** A letter with what may melt into it: marks, the later parts of a Hangul syllable; plain text a run at a time. */
const LATER = '[\\p{M}\\u1160-\\u11ff\\u{16d67}]';
const PIECE = new RegExp(`[\\0-\\x7f]+(?!${LATER})|[^]${LATER}*`, 'gu');

/** The words in their composed form, and how a place in it is found in the words themselves. */
function compose(words: string): { composed: string; original(place: Place): Place } {
  if (words.normalize('NFC') === words) return { composed: words, original: (place) => place };
  let composed = '';
  let at = 0;
  /** The pieces that differ: where they stand in the words, and in the composed form. */
  const differing: { was: Place; is: Place }[] = [];
  for (const [piece] of words.matchAll(PIECE)) {
    const form = piece.normalize('NFC');
    if (form !== piece) {
      const was = { start: at, end: at + piece.length };
      differing.push({ was, is: { start: composed.length, end: composed.length + form.length } });
    }
    composed += form;
    at += piece.length;
  }
  return {
    composed,
    original: ({ start, end }) => ({
      start: moved(start, (piece) => piece.was.start),
      // One behind the last character, whose own piece counts.
      end: moved(end - 1, (piece) => piece.was.end - 1) + 1,
    }),
  };

  function moved(offset: number, within: (piece: { was: Place; is: Place }) => number): number {
    const piece = lastUpTo(offset);
    if (piece === undefined) return offset;
    return offset < piece.is.end ? within(piece) : offset - piece.is.end + piece.was.end;
  }

  function lastUpTo(offset: number): { was: Place; is: Place } | undefined {
    let low = 0;
    let high = differing.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((differing[middle]?.is.start ?? Infinity) <= offset) low = middle + 1;
      else high = middle;
    }
    return differing[low - 1];
  }
}
