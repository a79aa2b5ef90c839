/** An entry of the daily log as the one line that is written: for the file, and for telling what was written. */

/** Every character that some program takes for a line end. */
export const LINE_END = /\r\n|[\n\r\v\f\u0085\u2028\u2029]/;

/** The entry's lines joined into one; halves of surrogate pairs, which UTF-8 cannot hold, are replaced. */
export function entryLine(entry: string): string {
  return entry
    .replace(/\p{Surrogate}/gu, '\uFFFD')
    .split(LINE_END)
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .join(' ');
}
