/** Times given by people and models: a date, a time, or an age. */
import type { Zone } from './dates.js';

export const A_TIME = 'a date (2026-01-31), a time (2026-01-31T14:30), or how long ago (7d, 12h, 30m)';

const UNITS = { d: 86_400_000, h: 3_600_000, m: 60_000 };

/** First and last moment, ms; null if it is invalid. */
export function momentsOf(given: string, zone: Zone, now: number): { from: number; to: number } | null {
  const [, count, unit] = /^(\d{1,6})([dhm])$/.exec(given) ?? [];
  if (unit !== undefined) {
    const at = now - Number(count) * UNITS[unit as keyof typeof UNITS];
    return { from: at, to: at };
  }
  const [, year, month, day, hour, minute, rest = ''] =
    /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)((?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?))?$/.exec(
      given,
    ) ?? [];
  const date = `${year}-${month}-${day}`;
  const isDay = year !== undefined && new Date(`${date}T00:00Z`).toJSON()?.slice(0, 10) === date;
  if (!isDay) return null;
  const begins = (days: number) => localMidnight(Number(year), Number(month), Number(day) + days, zone);
  if (hour === undefined) return { from: begins(0), to: begins(1) - 1 };
  const local = Date.parse(`${date}T${hour}:${minute}${rest.replace(/(?:Z|[+-]\d\d:?\d\d)$/, '')}Z`);
  const at = /[Z+-]/.test(rest)
    ? Date.parse(`${date}T${hour}:${minute}${rest}`)
    : begins(0) + local - Date.parse(`${date}T00:00Z`);
  return Number.isFinite(at) && Number.isFinite(local) ? { from: at, to: at } : null;
}

/** ms; up to an hour off if the clocks change then. NaN for an invalid date. */
export function localMidnight(year: number, month: number, date: number, zone: Zone): number {
  const asUtc = Date.UTC(year, month - 1, date);
  if (!Number.isFinite(asUtc)) return Number.NaN;
  const local = Date.parse(`${zone.time(asUtc).replace(' ', 'T')}Z`);
  return asUtc - (local - asUtc);
}
