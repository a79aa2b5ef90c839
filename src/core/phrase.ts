/**
 * A phrase that somebody wants forgotten, and how to find it in files and in the store: letter case, white space and
 * Unicode composition are ignored.
 */

/** Replaces forgotten words. No phrase matches in it or across it, so forgetting "forgotten" changes nothing. */
export const FORGOTTEN = '[forgotten]';

/** A piece of a text. */
export interface TextRange {
  /** Offset of its first character, and of the first one after it. */
  start: number;
  end: number;
}

export interface Phrase {
  /** As the person wrote it, trimmed. */
  text: string;
  isIn(words: string): boolean;
  /** Its occurrences in the words, in order. */
  rangesIn(words: string): TextRange[];
  /** The words with the phrase replaced by `by`; the identical string if it does not occur. */
  replacedIn(words: string, by: string): string;
}

const SPACE = '[\\s\\u0085]';

/** Throws RangeError for a text without any words. */
export function phraseOf(text: string): Phrase {
  const parts = text
    .normalize('NFC')
    .split(new RegExp(`${SPACE}+`, 'u'))
    .filter((part) => part !== '');
  if (parts.length === 0) throw new RangeError('a phrase needs words');
  const source = parts.map(literal).join(`${SPACE}+`);
  return { text: text.trim(), isIn, rangesIn, replacedIn };

  function* find(composed: string): Generator<TextRange> {
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

  function rangesIn(words: string): TextRange[] {
    const { composed, original } = compose(words);
    const ranges: TextRange[] = [];
    for (const found of find(composed)) {
      const range = original(found);
      const last = ranges.at(-1);
      // Two matches inside one composed letter.
      if (last !== undefined && range.start < last.end) last.end = Math.max(last.end, range.end);
      else ranges.push(range);
    }
    return ranges;
  }

  function replacedIn(words: string, by: string): string {
    let replaced = '';
    let done = 0;
    for (const { start, end } of rangesIn(words)) {
      replaced += words.slice(done, start) + by;
      done = end;
    }
    return done === 0 ? words : replaced + words.slice(done);
  }
}

function literal(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/]/gu, '\\$&');
}

/** One letter with the marks or Hangul parts that composition joins to it; plain ASCII text in longer runs. */
const LATER = '[\\p{M}\\u1160-\\u11ff\\u{16d67}]';
const PIECE = new RegExp(`[\\0-\\x7f]+(?!${LATER})|[^]${LATER}*`, 'gu');

/** The composed form of the words, and a function that maps its ranges back to the original. */
function compose(words: string): { composed: string; original(range: TextRange): TextRange } {
  if (words.normalize('NFC') === words) return { composed: words, original: (range) => range };
  let composed = '';
  let at = 0;
  /** The pieces that composition changes: their ranges in the original and in the composed form. */
  const differing: { was: TextRange; is: TextRange }[] = [];
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
      // Maps the last character, not the one after it, which may belong to another piece.
      end: moved(end - 1, (piece) => piece.was.end - 1) + 1,
    }),
  };

  function moved(offset: number, within: (piece: { was: TextRange; is: TextRange }) => number): number {
    const piece = lastUpTo(offset);
    if (piece === undefined) return offset;
    return offset < piece.is.end ? within(piece) : offset - piece.is.end + piece.was.end;
  }

  function lastUpTo(offset: number): { was: TextRange; is: TextRange } | undefined {
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
