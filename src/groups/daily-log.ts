/** The daily log of a chat: one file a day, one line an entry. Here the pure part: dates, entries, the digest. */
import { LINE_END } from '../core/entry.js';
import { cut } from './budget.js';
import { BOM, decode, linesOf } from './byte-text.js';

/** A day of the log, as far as a prompt shows it. */
export interface Day {
  date: string;
  text: string;
}

/** `YYYY-MM-DD`, and a day that the calendar has. */
export function isDate(date: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(date)) return false;
  const time = Date.parse(`${date}T00:00:00Z`);
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(date);
}

/** The name of a file of the daily log. */
export function isDailyName(name: string): boolean {
  return name.endsWith('.md') && isDate(name.slice(0, -'.md'.length));
}

/** The days that a folder has files of, newest first. */
export function datesIn(fileNames: string[]): string[] {
  return fileNames
    .filter(isDailyName)
    .map((name) => name.slice(0, -'.md'.length))
    .sort()
    .reverse();
}

/** The days as they go into a prompt. Headings and the markers of single days count into the whole. */
export function digest(days: Day[], maxChars: number): string {
  const blocks = days.map(({ date, text }) => `--- ${date} ---\n${text}`);
  return cut(blocks.join('\n\n'), maxChars, 'daily-max-chars').text;
}

/** Whether an entry stands in the file as a line of its own. */
export function hasEntry(file: Buffer | null, line: string): boolean {
  return (file?.toString('utf8') ?? '').split(LINE_END).some((other) => other.trim() === line);
}

/** The file with one entry more. */
export function withEntry(file: Buffer | null, line: string): Buffer {
  const before = file ?? Buffer.alloc(0);
  const eol = before.includes('\r\n') ? '\r\n' : '\n';
  const gap = before.length === 0 || before.at(-1) === 0x0a ? '' : eol;
  return Buffer.concat([before, Buffer.from(gap + line + eol, 'utf8')]);
}

/** The file without the last line that is the entry; null when none is. */
export function withoutEntry(file: Buffer, line: string): Buffer | null {
  const whole = file.toString('latin1');
  const bom = whole.startsWith(BOM) ? BOM : '';
  const lines = linesOf(whole.slice(bom.length));
  const at = lines.findLastIndex((other) => decode(other).trim() === line);
  return at < 0 ? null : Buffer.from(bom + lines.toSpliced(at, 1).join(''), 'latin1');
}
