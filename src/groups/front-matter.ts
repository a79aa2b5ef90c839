/** Front matter: YAML between two `---` lines at the beginning of a file, as text or as bytes (see `byte-text.ts`). */
import { decode, encode } from '../core/byte-text.js';
import { withKey } from './yaml-edit.js';

export interface FrontMatter {
  /** The opening line, with a byte order mark if there is one. */
  opening: string;
  matter: string;
  /** Starts with the closing line. */
  rest: string;
  /** Everything after the closing line. */
  body: string;
}

const OPENING = /^(?:\uFEFF|\xef\xbb\xbf)?---[ \t]*\r?\n/;

/** null if the file has none, or it is not closed. */
export function splitFrontMatter(file: string): FrontMatter | null {
  const opening = OPENING.exec(file)?.[0];
  if (opening === undefined) return null;
  const closing = /^---[ \t]*(?:\r?\n|$)/m.exec(file.slice(opening.length));
  if (closing === null) return null;
  const at = opening.length + closing.index;
  return {
    opening,
    matter: file.slice(opening.length, at),
    rest: file.slice(at),
    body: file.slice(at + closing[0].length),
  };
}

export function beginsFrontMatter(file: string): boolean {
  return OPENING.test(file);
}

/** The file with one key of its front matter set; null if that cannot be edited reliably. */
export function withFrontMatterKey(file: Buffer, key: string, value: string | boolean): Buffer | null {
  const parts = splitFrontMatter(file.toString('latin1'));
  const matter = parts && withKey(decode(parts.matter), key, value);
  return parts && matter !== null ? Buffer.from(parts.opening + encode(matter) + parts.rest, 'latin1') : null;
}
