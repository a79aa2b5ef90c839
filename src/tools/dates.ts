/** Days as the daily log names its files. */
import * as z from 'zod';
import { createZone } from '../core/dates.js';

/** The day that `now` falls on in a zone, as YYYY-MM-DD. */
export function dayIn(timezone: string, now: number): string {
  return createZone(timezone).date(now);
}

/** `YYYY-MM-DD`, and a day that the calendar has. */
export function isDay(date: string): boolean {
  return z.iso.date().safeParse(date).success;
}
