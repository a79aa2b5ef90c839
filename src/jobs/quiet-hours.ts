/** The hours in which what a persona set by itself is kept for later. Pure. */
import { clockOf, instantOf } from './zone-time.js';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/** `"22:00-08:00"`, also across midnight: the time itself, or the end of the quiet time that it falls into. */
export function afterQuiet(at: number, quiet: string | null, zone: string): number {
  if (quiet === null) return at;
  const [begin = 0, end = 0] = quiet.split('-').map(minutesOf);
  const local = clockOf(zone)(at);
  const midnight = Math.floor(local / DAY_MS) * DAY_MS;
  const minute = (local - midnight) / MINUTE_MS;
  const isOverMidnight = begin > end;
  const isQuiet = isOverMidnight ? minute >= begin || minute < end : minute >= begin && minute < end;
  if (!isQuiet) return at;
  const day = isOverMidnight && minute >= begin ? midnight + DAY_MS : midnight;
  return instantOf(day + end * MINUTE_MS, zone);
}

function minutesOf(time: string): number {
  const [hours = 0, minutes = 0] = time.split(':').map(Number);
  return hours * 60 + minutes;
}
