/** Lines of texts: pieces for search, keys that identify a line, and lines that were added. */
import { createHash } from 'node:crypto';

/** In characters, so that search hits stay short. */
const LONGEST = 1_500;

/** Pieces of a long line, for search and `Origins`. */
export function* piecesOf(line: string): Generator<string> {
  const text = line.trim();
  for (let from = 0; from < text.length; ) {
    let until = Math.min(text.length, from + LONGEST);
    if (until < text.length) {
      const space = text.lastIndexOf(' ', until);
      if (space > from + LONGEST / 2) until = space;
      else if (/[\uD800-\uDBFF]/.test(text[until - 1] ?? '')) until--;
    }
    yield text.slice(from, until).trim();
    from = until;
  }
}

/** Short, because a prompt may show only the beginning of a line. */
const KNOWN_BY_CHARS = 80;

/** Indents, bullets, headings and quote marks. */
const BEFORE_WORDS = /^[^\p{L}\p{N}\p{Extended_Pictographic}]+/u;

/** Identifies a line at any place and indentation; null if it has no words. */
export function lineKey(line: string): string | null {
  const words = line.replace(BEFORE_WORDS, '').slice(0, KNOWN_BY_CHARS).trim();
  if (words === '') return null;
  return createHash('sha256').update(words).digest('base64url').slice(0, 22);
}

export function lineKeys(line: string): string[] {
  return [line, ...piecesOf(line)].flatMap((piece) => lineKey(piece) ?? []);
}

export function linesOfText(text: string): string[] {
  return text.split(/\r\n|\n|\r/);
}

export function addedLines(before: string, after: string): string[] {
  const known = new Set(linesOfText(before).map((line) => line.trim()));
  return linesOfText(after).filter((line) => !known.has(line.trim()));
}
