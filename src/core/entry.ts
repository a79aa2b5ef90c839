/** Turns an entry of the daily log into the single line that is written: used by the file and by messages about it. */

/** Every character that some program treats as a line end. */
export const LINE_END = /\r\n|[\n\r\v\f\u0085\u2028\u2029]/;

/** Joins the entry's lines into one; lone surrogates, which UTF-8 cannot encode, are replaced. */
export function entryLine(entry: string): string {
  return entry
    .replace(/\p{Surrogate}/gu, '\uFFFD')
    .split(LINE_END)
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .join(' ');
}
