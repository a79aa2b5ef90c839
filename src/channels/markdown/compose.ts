/** Markdown to the messages of a platform. Most chat replies are one short plain text, which needs no parser. */
import type { Part } from '../../core/channel.js';
import { cut, type MessageLimits } from './cut.js';
import { parse } from './parse.js';

/** Anything that could be markup: special characters, and line starts of lists, rules, headings and code. */
const MARKUP =
  /[*_~`[\]<>&\\|#$\r\0\p{Surrogate}]|^[ \t]*(?:[-+=]|\d{1,9}[.)](?:[ \t]|$))|^(?: {4}| {0,3}\t)/mu;

export function isPlain(source: string): boolean {
  return !MARKUP.test(source);
}

/** Equals the parser's result: lines trimmed, one blank line between paragraphs. */
export function plain(source: string): string {
  const lines: string[] = [];
  for (const line of source.split('\n')) {
    const bare = line.trim();
    if (bare !== '' || (lines.length > 0 && lines.at(-1) !== '')) lines.push(bare);
  }
  if (lines.at(-1) === '') lines.pop();
  return lines.join('\n');
}

/** `tableWidth`: in columns; wider tables are written row by row. No parts for blank text. */
export function composed(markdown: string, tableWidth: number, limits: MessageLimits): Part[] {
  if (!isPlain(markdown)) return cut(parse(markdown, { tableWidth }), limits);
  const part: Part = { text: plain(markdown), marks: [] };
  if (part.text === '') return [];
  // The platform's markup may make it longer.
  return limits.measure === undefined && part.text.length <= limits.limit ? [part] : cut(part, limits);
}
