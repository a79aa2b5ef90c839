/** A daily log of a chat, the workspace or an agent: one file per day, one line per entry. Pure. */
import { cut } from './cut.js';
import { BOM, decode, linesOf } from './file-text.js';

const LINE_END = /\r\n|[\n\r\v\f\u0085\u2028\u2029]/;

/** One line; replaces lone surrogates, which UTF-8 cannot encode. */
export function entryLine(entry: string): string {
  return entry
    .replace(/\p{Surrogate}/gu, '\uFFFD')
    .split(LINE_END)
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .join(' ');
}

interface Day {
  date: string;
  text: string;
}

export function isDate(date: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(date)) return false;
  const time = Date.parse(`${date}T00:00:00Z`);
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(date);
}

function isDailyName(name: string): boolean {
  return name.endsWith('.md') && isDate(name.slice(0, -'.md'.length));
}

/** Also an imported day, `2026-03-01.imported.md`. */
export function isDayFile(name: string): boolean {
  return isDailyName(name.replace(/\.imported(?:-\d{1,9})?(?=\.md$)/, ''));
}

export function datesIn(fileNames: string[]): string[] {
  return fileNames
    .filter(isDailyName)
    .map((name) => name.slice(0, -'.md'.length))
    .sort()
    .reverse();
}

/** Empty days do not count towards `most`. */
export async function recentDays(
  dates: readonly string[],
  today: string,
  most: number,
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

const FORGED_DAY = /^(?=[^\S\r\n\u2028\u2029]*--- \d{4}-\d{2}-\d{2} ---[^\S\r\n\u2028\u2029]*$)/gm;

/** `maxChars` includes headings and markers. */
export function digest(days: Day[], maxChars: number, limit = 'daily-max-chars'): string {
  const blocks = days.map(({ date, text }) => `--- ${date} ---\n${text.replace(FORGED_DAY, '\\')}`);
  return cut(blocks.join('\n\n'), maxChars, limit).text;
}

export function daysOf(digested: string): Day[] {
  return digested.split(/^(?=--- \d{4}-\d{2}-\d{2} ---$)/m).flatMap((block) => {
    const [, date, text = ''] = /^--- (\d{4}-\d{2}-\d{2}) ---\n?([\s\S]*)$/.exec(block) ?? [];
    return date === undefined ? [] : [{ date, text: text.trim() }];
  });
}

export function hasEntry(file: Buffer | null, line: string): boolean {
  return (file?.toString('utf8') ?? '').split(LINE_END).some((other) => other.trim() === line);
}

export function withEntry(file: Buffer | null, line: string): Buffer {
  const before = file ?? Buffer.alloc(0);
  const eol = before.includes('\r\n') ? '\r\n' : '\n';
  const gap = before.length === 0 || before.at(-1) === 0x0a ? '' : eol;
  return Buffer.concat([before, Buffer.from(gap + line + eol, 'utf8')]);
}

export function withoutEntry(file: Buffer, line: string): Buffer | null {
  const whole = file.toString('latin1');
  const bom = whole.startsWith(BOM) ? BOM : '';
  const lines = linesOf(whole.slice(bom.length));
  const at = lines.findLastIndex((other) => decode(other).trim() === line);
  return at < 0 ? null : Buffer.from(bom + lines.toSpliced(at, 1).join(''), 'latin1');
}
