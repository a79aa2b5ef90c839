/**
 * A daily log, of a chat, of the workspace or of an agent: one file per day, one line per entry. The pure part: dates,
 * entries, what a prompt shows.
 */
import { BOM, decode, linesOf } from './byte-text.js';
import { cut } from './cut.js';
import { LINE_END } from './entry.js';

/** A day of the log, as shown in a prompt. */
export interface Day {
  date: string;
  text: string;
}

/** `YYYY-MM-DD`, and a day that exists in the calendar. */
export function isDate(date: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(date)) return false;
  const time = Date.parse(`${date}T00:00:00Z`);
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(date);
}

/** Whether it is the name of a daily log file. */
export function isDailyName(name: string): boolean {
  return name.endsWith('.md') && isDate(name.slice(0, -'.md'.length));
}

/** The same, and one that was imported beside it: `2026-03-01.imported.md`. Prompts show the former alone. */
export function isDayFile(name: string): boolean {
  return isDailyName(name.replace(/\.imported(?:-\d{1,9})?(?=\.md$)/, ''));
}

/** The days for which a folder has files, newest first. */
export function datesIn(fileNames: string[]): string[] {
  return fileNames
    .filter(isDailyName)
    .map((name) => name.slice(0, -'.md'.length))
    .sort()
    .reverse();
}

/**
 * The newest days dated today or earlier that hold something; `dates` are newest first. A day without text uses none of
 * the `most` places.
 */
export async function recentDays(
  dates: readonly string[],
  { today, most }: { today: string; most: number },
  textOf: (date: string) => Promise<string>,
): Promise<Day[]> {
  const days: Day[] = [];
  for (const date of dates) {
    if (days.length >= most) break;
    if (date > today) continue;
    const text = await textOf(date);
    if (text !== '') days.push({ date, text });
  }
  return days;
}

/** A line that looks like the heading of a day, which the text of a day must not hold. */
const FORGED_DAY = /^(?=[^\S\r\n\u2028\u2029]*--- \d{4}-\d{2}-\d{2} ---[^\S\r\n\u2028\u2029]*$)/gm;

/** The days as included in a prompt. `maxChars` includes headings and the markers of single days. */
export function digest(days: Day[], maxChars: number, limit = 'daily-max-chars'): string {
  const blocks = days.map(({ date, text }) => `--- ${date} ---\n${text.replace(FORGED_DAY, '\\')}`);
  return cut(blocks.join('\n\n'), maxChars, limit).text;
}

/** The days of a digest, as it shows them. */
export function daysOf(digested: string): Day[] {
  return digested.split(/^(?=--- \d{4}-\d{2}-\d{2} ---$)/m).flatMap((block) => {
    const [, date, text = ''] = /^--- (\d{4}-\d{2}-\d{2}) ---\n?([\s\S]*)$/.exec(block) ?? [];
    return date === undefined ? [] : [{ date, text: text.trim() }];
  });
}

/** Whether the file contains the entry as a line. */
export function hasEntry(file: Buffer | null, line: string): boolean {
  return (file?.toString('utf8') ?? '').split(LINE_END).some((other) => other.trim() === line);
}

/** The file with the entry appended. */
export function withEntry(file: Buffer | null, line: string): Buffer {
  const before = file ?? Buffer.alloc(0);
  const eol = before.includes('\r\n') ? '\r\n' : '\n';
  const gap = before.length === 0 || before.at(-1) === 0x0a ? '' : eol;
  return Buffer.concat([before, Buffer.from(gap + line + eol, 'utf8')]);
}

/** The file without the last line that equals the entry; null if there is none. */
export function withoutEntry(file: Buffer, line: string): Buffer | null {
  const whole = file.toString('latin1');
  const bom = whole.startsWith(BOM) ? BOM : '';
  const lines = linesOf(whole.slice(bom.length));
  const at = lines.findLastIndex((other) => decode(other).trim() === line);
  return at < 0 ? null : Buffer.from(bom + lines.toSpliced(at, 1).join(''), 'latin1');
}
