/** One secret in a text, as the finders beside report it. */

export interface Secret {
  /** With its article: `a password`. */
  kind: string;
  /** Where in the text it is, or its line begins. */
  at: number;
  /** What is secret, bare of marks, to know it again in another place. Never shown, never logged. */
  value: string;
}

export interface Line {
  text: string;
  /** Where in the text it begins. */
  at: number;
}

export function linesOf(text: string): Line[] {
  let at = 0;
  return text.split('\n').map((line) => {
    const start = at;
    at += line.length + 1;
    return { text: line, at: start };
  });
}
