/**
 * The short way for text without markup, which most chat replies are: it needs no parser. Where `isPlain`
 * holds, `plain` gives what the parser would.
 */

/** Anything that could be markup: special characters, and line beginnings of lists, rules, headings and code. */
const MARKUP = /[*_~`[\]<>&\\|#\r\0]|^[ \t]*(?:[-+=]|\d{1,9}[.)](?:[ \t]|$))|^(?: {4}| {0,3}\t)/m;

export function isPlain(source: string): boolean {
  return !MARKUP.test(source);
}

/** Lines without the space around them; one blank line between paragraphs. */
export function plain(source: string): string {
  const lines: string[] = [];
  for (const line of source.split('\n')) {
    const bare = line.trim();
    if (bare !== '' || (lines.length > 0 && lines.at(-1) !== '')) lines.push(bare);
  }
  if (lines.at(-1) === '') lines.pop();
  return lines.join('\n');
}
