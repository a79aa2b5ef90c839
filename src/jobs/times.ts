/**
 * Times of day in a zone, the instants that they are, and when cron lines are due. A time of day that daylight saving skips is
 * due when the clocks go forward; one that it doubles, the first time only. What repeats (every 30 minutes) goes on. Pure.
 */
import { Cron } from 'croner';

export const MINUTE_MS = 60_000;
export const DAY_MS = 86_400_000;

/** Whether it is the name of a zone; an offset is none. */
export function isZone(name: string): boolean {
  if (!/^[A-Za-z]/.test(name)) return false;
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

/**
 * The instant at which clocks in a zone show this (`local`: as if it were UTC). What they show twice, when daylight saving
 * ends, is the first; what they skip, when it begins, is as much later as they skip: 02:30 becomes 03:30.
 */
export function instantOf(local: number, zone: string): number {
  const showing = clockOf(zone);
  const before = showing(local - DAY_MS) - (local - DAY_MS);
  const after = showing(local + DAY_MS) - (local + DAY_MS);
  const fitting = [local - before, local - after].filter((at) => showing(at) === local);
  return fitting.length > 0 ? Math.min(...fitting) : local - before;
}

/** What clocks in a zone show, as if it were UTC; to the second. */
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

/** An ISO 8601 time, in the zone where it has no offset of its own; null if it is none. */
export function timeIn(text: string, zone: string): number | null {
  const parts = ISO.exec(text.trim());
  if (parts === null) return null;
  // A date that the calendar does not have would become another one.
  const written = `${parts[1]}-${parts[2]}-${parts[3]}T${parts[4]}:${parts[5]}:${parts[6] ?? '00'}.000Z`;
  const local = Date.parse(written);
  if (!Number.isFinite(local) || new Date(local).toISOString() !== written) return null;
  const offset = parts[7];
  if (offset === undefined) return instantOf(local, zone);
  const ms = offsetOf(offset);
  return ms === null ? null : local - ms;
}

/** null for what no zone of the world has. */
function offsetOf(text: string): number | null {
  if (/^z$/i.test(text)) return 0;
  const [, sign, hours, minutes] = /^([+-])(\d\d):?(\d\d)?$/.exec(text) ?? [];
  const total = Number(hours) * 60 + Number(minutes ?? 0);
  if (Number(minutes ?? 0) > 59 || total > 14 * 60) return null;
  return (sign === '-' ? -1 : 1) * total * 60_000;
}

const LONGEST_LINE = 200;

/** Why a cron line is refused; null if it is fine. */
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

/** The first slot after a time; null if there is none any more. */
export function nextSlot(line: string, zone: string, after: number): number | null {
  return compiled(line, zone).nextRun(new Date(after))?.getTime() ?? null;
}

/** The last slot up to now, from the slot `from` on. */
export function lastSlot(line: string, zone: string, { from, now }: { from: number; now: number }): number {
  // The library looks before a time, to the second.
  const [last] = compiled(line, zone).previousRuns(1, new Date(Math.floor(now / 1000) * 1000 + 1000));
  const at = last?.getTime() ?? from;
  return at > from && at <= now ? at : from;
}

/** How long there is at least between two slots, as far as the next ones show. */
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
