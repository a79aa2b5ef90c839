/** Days as the daily log names its files. */
import * as z from 'zod';
import { createZone } from '../core/dates.js';

const DAY_MS = 86_400_000;

/** The day that `now` falls on in a zone, as YYYY-MM-DD. */
export function dayIn(timezone: string, now: number): string {
  return createZone(timezone).date(now);
}

/** From one day to another, both as YYYY-MM-DD; negative where the other is earlier. */
export function daysBetween(from: string, to: string): number {
  return Math.round((Date.parse(to) - Date.parse(from)) / DAY_MS);
}

/** `YYYY-MM-DD`, and a day that the calendar has. */
export function isDay(date: string): boolean {
  return z.iso.date().safeParse(date).success;
}
