import { createHash } from 'node:crypto';

/** Keeps a surrogate pair whole. */
export function cutAt(words: string, most: number): string {
  const last = words.charCodeAt(most - 1);
  return words.slice(0, last >= 0xd800 && last <= 0xdbff ? most - 1 : most);
}

/** Line ends and other white space as single spaces; cut with `end`. */
export function inOneLine(text: string, most = Number.POSITIVE_INFINITY, end = '…'): string {
  const line = text.replace(/[\s\p{Cc}]+/gu, ' ').trim();
  return line.length <= most ? line : `${cutAt(line, most)}${end}`;
}

/** Follows cut text. `limit` names the setting or rule. */
export function cutMarker(limit: string, most: number): string {
  return `<<truncated due to ${limit}=${most}>>`;
}

export function cutWithMarker(words: string, most: number, limit: string): string {
  return words.length <= most ? words : `${cutAt(words, most)}\n\n${cutMarker(limit, most)}`;
}

interface Cut {
  text: string;
  /** Of the trimmed text. */
  kept: number;
}

export function cut(text: string, max: number, limit: string): Cut {
  const trimmed = text.trim();
  return {
    text: cutWithMarker(trimmed, max, limit),
    kept: trimmed.length <= max ? trimmed.length : cutAt(trimmed, max).length,
  };
}

export function hasMarker(text: string): boolean {
  return /<<truncated due to [a-z-]+=\d+>>/.test(text);
}

/** Safe for a terminal: escapes control, invisible and bidirectional characters. */
export function printable(text: string): string {
  return text.replace(/\r\n?/g, '\n').replace(UNSEEN, spelledOut);
}

export function printableLine(text: string): string {
  return printable(text).replace(/[\n\t]+/g, ' ');
}

/** Parses to the same value. */
export function printableJson(value: unknown, indent?: number): string {
  return escapedInJson(JSON.stringify(value, null, indent) ?? 'null');
}

/** The same JSON: in it such characters occur only in strings. */
export function escapedInJson(json: string): string {
  return json.replace(UNSEEN, (sign) =>
    Array.from({ length: sign.length }, (_, n) => `\\u${hex(sign.charCodeAt(n), 4)}`).join(''),
  );
}

const UNSEEN = /(?![\n\t\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu;

function spelledOut(sign: string): string {
  return `\\u{${hex(sign.codePointAt(0) ?? 0, 1)}}`;
}

function hex(number: number, digits: number): string {
  return number.toString(16).padStart(digits, '0');
}

export function sizeInWords(bytes: number): string {
  if (bytes < 1000) return `${bytes} bytes`;
  if (bytes < 999_500) return `${Math.round(bytes / 1000)} kB`;
  if (bytes < 999_950_000) return `${(bytes / 1_000_000).toFixed(1)} MB`;
  return `${(bytes / 1_000_000_000).toFixed(1)} GB`;
}

const LARGEST_ANSWER = 0.25;

export function answerTokens(contextTokens: number, maxOutputTokens: number): number {
  return Math.min(maxOutputTokens, Math.floor(contextTokens * LARGEST_ANSWER));
}

/** Without a server's count: four characters per token, or one beyond Latin. */
export function estimateTokens(text: string): number {
  let wide = 0;
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0x2ff) wide++;
  return Math.ceil((text.length - wide) / 4) + wide;
}

/** By its byte order mark; null: none. */
export function markedEncoding(bytes: Buffer): 'utf-8' | 'utf-16le' | 'utf-16be' | null {
  const mark = bytes.toString('latin1', 0, 3);
  if (mark === '\xef\xbb\xbf') return 'utf-8';
  if (mark.startsWith('\xff\xfe')) return 'utf-16le';
  return mark.startsWith('\xfe\xff') ? 'utf-16be' : null;
}

/** Without the byte order mark; null if it is something else. `isCut`: the last character may be incomplete. */
export function decodedAs(encoding: string, bytes: Buffer, isCut = false): string | null {
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(bytes, { stream: isCut });
  } catch {
    return null;
  }
}

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
