/**
 * What somebody wants forgotten, as words to be found again in files and in the store: letter case, the kind and
 * amount of white space and the form of composed letters make no difference.
 */

/** Replaces forgotten words. No phrase is found in it or across it, so that forgetting "forgotten" changes nothing. */
export const FORGOTTEN = '[forgotten]';

/** A piece of a text. */
export interface TextRange {
  /** Offsets of its first character and of the first one behind it. */
  start: number;
  end: number;
}

export interface Phrase {
  /** As the person wrote it, trimmed. */
  text: string;
  isIn(words: string): boolean;
  /** Where it stands in the words, in their order. */
  rangesIn(words: string): TextRange[];
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
      // Two that stand in one composed letter.
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

/** A letter with the marks or parts of a Hangul syllable that composing joins to it; plain text a run at a time. */
const LATER = '[\\p{M}\\u1160-\\u11ff\\u{16d67}]';
const PIECE = new RegExp(`[\\0-\\x7f]+(?!${LATER})|[^]${LATER}*`, 'gu');

/** The words in their composed form, and how a range of it is found in the words themselves. */
function compose(words: string): { composed: string; original(range: TextRange): TextRange } {
  if (words.normalize('NFC') === words) return { composed: words, original: (range) => range };
  let composed = '';
  let at = 0;
  /** The pieces that differ: where they stand in the words, and in the composed form. */
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
      // One behind the last character, whose own piece counts.
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
