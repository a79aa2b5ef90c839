/** Front matter: YAML between two `---` lines at the beginning of a file, as text or as bytes (see `byte-text.ts`). */
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
