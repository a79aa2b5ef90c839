/** The daily log of a chat: one file a day, one line an entry. Here the pure part: dates, entries, the digest. */
import { cut } from './budget.js';

export interface DailyBudget {
  dailyPerDayMaxChars: number;
  dailyMaxChars: number;
}

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

/** The days that a folder has files of, up to and including `today`, newest first. */
export function daysUpTo(fileNames: string[], today: string): string[] {
  return fileNames
    .filter((name) => name.endsWith('.md'))
    .map((name) => name.slice(0, -'.md'.length))
    .filter((date) => isDate(date) && date <= today)
    .sort()
    .reverse();
}

/** The days as they go into a prompt. Headings and the markers of single days count into the whole. */
export function digest(days: Day[], budget: DailyBudget): string {
  const blocks = days.map(({ date, text }) => {
    const shown = cut(text, budget.dailyPerDayMaxChars, 'daily-per-day-max-chars').text;
    return `--- ${date} ---\n${shown}`;
  });
  return cut(blocks.join('\n\n'), budget.dailyMaxChars, 'daily-max-chars').text;
}

/** The file with one entry more; an entry is one line, whatever it was before. */
export function withEntry(file: Buffer | null, entry: string): Buffer {
  const before = file ?? Buffer.alloc(0);
  const eol = before.includes('\r\n') ? '\r\n' : '\n';
  const gap = before.length === 0 || before.at(-1) === 0x0a ? '' : eol;
  const line = entry.trim().replace(/\s*[\r\n\u2028\u2029]\s*/g, ' ');
  return Buffer.concat([before, Buffer.from(gap + line + eol, 'utf8')]);
}
