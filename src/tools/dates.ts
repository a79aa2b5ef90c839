/** Days as the daily log names its files. */
import { z } from 'zod';

/** The day that `now` falls on in a zone, as YYYY-MM-DD. */
export function dayIn(timezone: string, now: number): string {
  const parts = new Intl.DateTimeFormat('en-US', {
    timeZone: timezone,
    calendar: 'gregory',
    numberingSystem: 'latn',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
  }).formatToParts(now);
  const part = (type: string) => parts.find((found) => found.type === type)?.value ?? '';
  return `${part('year').padStart(4, '0')}-${part('month')}-${part('day')}`;
}

/** `YYYY-MM-DD`, and a day that the calendar has. */
export function isDay(date: string): boolean {
  return z.iso.date().safeParse(date).success;
}
