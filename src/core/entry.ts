/** A line of the daily log: whoever writes it, and whoever says what was written, mean the same one. */

/** All that some program shows as a line end. */
export const LINE_END = /\r\n|[\n\r\v\f\u0085\u2028\u2029]/;

/** An entry as the one line that it becomes, whatever it was before, in characters that UTF-8 has. */
export function entryLine(entry: string): string {
  return entry
    .replace(/\p{Surrogate}/gu, '\uFFFD')
    .split(LINE_END)
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .join(' ');
}
