/**
 * Local times in a zone, their instants, and the slots of cron lines. A local time skipped by daylight saving is due when the
 * clocks go forward; a doubled one, only the first time. Repeated slots (every 30 minutes) continue. Pure.
 */
import { Cron } from 'croner';

export const MINUTE_MS = 60_000;
export const DAY_MS = 86_400_000;

/** The instant of a local time (`local`: as if UTC): the first of two, or a skipped one moved by the gap (02:30 becomes 03:30). */
export function instantOf(local: number, zone: string): number {
  const showing = clockOf(zone);
  const before = showing(local - DAY_MS) - (local - DAY_MS);
  const after = showing(local + DAY_MS) - (local + DAY_MS);
  const fitting = [local - before, local - after].filter((at) => showing(at) === local);
  return fitting.length > 0 ? Math.min(...fitting) : local - before;
}

/** The local time in a zone, as if UTC; to the second. */
export function clockOf(zone: string): (at: number) => number {
  const format = new Intl.DateTimeFormat('sv-SE', {
    timeZone: zone,
    dateStyle: 'short',
    timeStyle: 'medium',
  });
  return (at) => Date.parse(`${format.format(at).replace(' ', 'T')}Z`);
}

const ISO =
  /^(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,]\d{1,9})?)?\s*(Z|[+-]\d\d(?::?\d\d)?)?$/i;

/** Parses ISO 8601, in `zone` if it has no offset; null if invalid. */
export function timeIn(text: string, zone: string): number | null {
  const parts = ISO.exec(text.trim());
  if (parts === null) return null;
  // Date.parse would accept a date such as 31 February as another one.
  const written = `${parts[1]}-${parts[2]}-${parts[3]}T${parts[4]}:${parts[5]}:${parts[6] ?? '00'}.000Z`;
  const local = Date.parse(written);
  if (!Number.isFinite(local) || new Date(local).toISOString() !== written) return null;
  const offset = parts[7];
  if (offset === undefined) return instantOf(local, zone);
  const ms = offsetOf(offset);
  return ms === null ? null : local - ms;
}

/** In ms; null if no zone has such an offset. */
function offsetOf(text: string): number | null {
  if (/^z$/i.test(text)) return 0;
  const [, sign, hours, minutes] = /^([+-])(\d\d):?(\d\d)?$/.exec(text) ?? [];
  const total = Number(hours) * 60 + Number(minutes ?? 0);
  if (Number(minutes ?? 0) > 59 || total > 14 * 60) return null;
  return (sign === '-' ? -1 : 1) * total * 60_000;
}

const LONGEST_LINE = 200;

/** The reason why a cron line is refused; null if valid. */
export function cronFault(line: string, zone: string, now: number): string | null {
  if (line.length > LONGEST_LINE) return `A cron line has at most ${LONGEST_LINE} characters.`;
  const fields = line.trim().split(/\s+/).length;
  if (fields !== 5 && fields !== 6) {
    return (
      `A cron line has 5 fields (minute, hour, day of month, month, day of week), or 6 with seconds before them; ` +
      `${JSON.stringify(line)} has ${fields}.`
    );
  }
  try {
    if (nextSlot(line, zone, now) !== null) return null;
    return `${JSON.stringify(line)} never comes: there is no such date.`;
  } catch (error) {
    return `${JSON.stringify(line)} is no cron line: ${reasonOf(error)}.`;
  }
}

/** The first slot after a time; null if none. */
export function nextSlot(line: string, zone: string, after: number): number | null {
  return compiled(line, zone).nextRun(new Date(after))?.getTime() ?? null;
}

/** The last slot from `from` up to `now`. */
export function lastSlot(line: string, zone: string, { from, now }: { from: number; now: number }): number {
  // The library searches strictly before a time, to the second.
  const [last] = compiled(line, zone).previousRuns(1, new Date(Math.floor(now / 1000) * 1000 + 1000));
  const at = last?.getTime() ?? from;
  return at > from && at <= now ? at : from;
}

/** Minimum gap between the next slots, in ms. */
export function shortestGap(line: string, zone: string, now: number): number {
  const cron = compiled(line, zone);
  const slots = cron.nextRuns(8, new Date(now)).map((at) => at.getTime());
  return Math.min(...slots.slice(1).map((at, n) => at - (slots[n] ?? 0)), Number.POSITIVE_INFINITY);
}

function compiled(line: string, zone: string): Cron {
  return new Cron(line.trim(), {
    timezone: zone,
    mode: '5-or-6-parts',
    fixedTimeRule: 'no-wildcard',
    paused: true,
  });
}

function reasonOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error))
    .replace(/^CronPattern: /, '')
    .replace(/\.$/, '');
}
