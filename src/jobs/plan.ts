/**
 * When a job is due: first, next, and after a failure. A local time skipped by daylight saving is due when the clocks
 * go forward; a doubled one, only the first time. Repeated slots (every 30 minutes) go on as always. Pure.
 */
import { Cron } from 'croner';
import { cutAt } from '../core/cut.js';
import { isZone, timeWithZone } from '../core/dates.js';
import { describe } from '../core/errors.js';
import type { Job, JobChange, JobTiming, TimingWish } from '../core/jobs.js';

export const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/** The instant of a local time (as if UTC): the first of two, or a skipped one moved by the gap (02:30 to 03:30). */
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
  /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(?::(\d\d)(?:[.,]\d{1,9})?)?\s*(Z|[+-](?:0\d|1[0-3])(?::?[0-5]\d)?|[+-]14(?::?00)?)?$/i;

/** Parses ISO 8601, in `zone` if it has no offset; null if invalid. */
export function timeIn(text: string, zone: string): number | null {
  const [, date, time, seconds = '00', offset] = ISO.exec(text.trim()) ?? [];
  const written = `${date}T${time}:${seconds}.000Z`;
  const local = Date.parse(written);
  // Date.parse would accept a date such as 31 February as another one.
  if (!Number.isFinite(local) || new Date(local).toISOString() !== written) return null;
  if (offset === undefined) return instantOf(local, zone);
  const [, sign, hours = 0, minutes = 0] = /^([+-])(\d\d):?(\d\d)?$/.exec(offset) ?? [];
  const ms = (Number(hours) * 60 + Number(minutes)) * MINUTE_MS;
  return sign === '-' ? local + ms : local - ms;
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
    const reason = describe(error).replace(/^CronPattern: |\.$/g, '');
    return `${JSON.stringify(line)} is no cron line: ${reason}.`;
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
function shortestGap(line: string, zone: string, now: number): number {
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

export interface Rules {
  /** For slots that passed while no gateway ran. */
  missed: 'once' | 'skip';
  /** `"22:00-08:00"`; null if none. */
  quietHours: string | null;
  /** Default for jobs without one. */
  timezone: string;
}

const LONGEST_PROMPT = 4_000;
/** Waits after the first three failures; the fourth parks the job. */
const BACK_OFF_MS = [MINUTE_MS, 5 * MINUTE_MS, 30 * MINUTE_MS];

/** The first due time, or why the wish is refused. */
export function firstOf(
  wish: TimingWish,
  rules: Rules,
  now: number,
): { ok: true; timing: JobTiming; at: number } | { ok: false; reason: string } {
  const { prompt, kind, followUp } = wish;
  const refused = (reason: string) => ({ ok: false as const, reason });
  if (prompt.trim() === '') return refused('The prompt is empty: it says what is to be done at that time.');
  if (prompt.length > LONGEST_PROMPT) {
    return refused(`The prompt has ${prompt.length} characters; ${LONGEST_PROMPT} are the most.`);
  }
  const timezone = wish.timezone?.trim() || rules.timezone;
  if (!isZone(timezone)) {
    return refused(`${quoted(timezone)} is no time zone; one is named like Europe/Berlin.`);
  }
  const timing = { kind, value: wish.value.trim(), timezone, followUp };
  if (kind === 'cron') {
    const fault = cronFault(timing.value, timezone, now);
    if (fault !== null) return refused(fault);
    if (followUp && shortestGap(timing.value, timezone, now) < DAY_MS - 2 * 60 * MINUTE_MS) {
      return refused('A task that nobody asked for comes at most once a day.');
    }
    const at = nextOf(timing, rules, now);
    return at === null ? refused(`${quoted(timing.value)} never comes.`) : { ok: true, timing, at };
  }
  const at = timeIn(timing.value, timezone);
  if (at === null) {
    return refused(
      `${quoted(timing.value)} is no time in ISO 8601, like 2026-01-31T08:00 or 2026-01-31T08:00+01:00. ${nowIn(timezone, now)}`,
    );
  }
  if (at <= now) return refused(`${quoted(timing.value)} is past. ${nowIn(timezone, now)}`);
  return { ok: true, timing, at: outOfQuiet(at, timing, rules) };
}

/** The next due time after `after`; null if none. */
export function nextOf(timing: JobTiming, rules: Rules, after: number): number | null {
  if (timing.kind === 'once') return null;
  const at = nextSlot(timing.value, timing.timezone, after);
  return at === null ? null : outOfQuiet(at, timing, rules);
}

/** The same time; for follow-ups in quiet hours, their end. */
export function outOfQuiet(at: number, timing: JobTiming, { quietHours }: Rules): number {
  return timing.followUp ? afterQuiet(at, quietHours, timing.timezone) : at;
}

/** The latest slot up to `now`; earlier ones are dropped. */
export function latestOf({ kind, value, timezone }: JobTiming, from: number, now: number): number {
  return kind === 'once' ? from : lastSlot(value, timezone, { from, now });
}

/** The change after a failed run; `at`: when it failed. */
export function afterFailure(
  job: Job,
  { slot, at, now }: { slot: number; at: number; now: number },
): JobChange & { state: 'active' | 'parked' } {
  const failures = job.failures + 1;
  const wait = BACK_OFF_MS[failures - 1];
  if (wait === undefined) return { state: 'parked', why: 'failed', nextAt: null, retryOf: null, failures };
  const again = Math.max(now, at + wait);
  const soonest = at + MINUTE_MS;
  const next =
    job.nextAt !== null && job.nextAt < soonest ? nextSlot(job.value, job.timezone, soonest - 1) : job.nextAt;
  // The next slot comes soon enough to replace the retry.
  if (next !== null && next <= again) return { state: 'active', nextAt: next, retryOf: null, failures };
  return { state: 'active', nextAt: again, retryOf: slot, failures };
}

function nowIn(timezone: string, now: number): string {
  return `It is now ${timeWithZone(now, timezone)}.`;
}

function quoted(text: string): string {
  return JSON.stringify(text.length > 60 ? `${cutAt(text, 60)}…` : text);
}

/** `"22:00-08:00"`, also across midnight: the time itself, or the end of the quiet hours it falls into. */
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
