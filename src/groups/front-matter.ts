/** YAML between two lines of `---` at the beginning of a file, in text as well as in bytes (see `bytes.ts`). */

export interface FrontMatter {
  /** The line above, with a byte order mark where there is one. */
  opening: string;
  matter: string;
  /** Begins with the line below. */
  rest: string;
  /** What stands below that. */
  body: string;
}

const OPENING = /^(?:\uFEFF|\xef\xbb\xbf)?---[ \t]*\r?\n/;

/** null when the file has none, or one that never ends. */
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
