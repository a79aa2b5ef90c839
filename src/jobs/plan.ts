/** When a job is due: first, next, and after a failure. Pure. */
import { cutAt } from '../core/cut.js';
import { createZone, isZone } from '../core/dates.js';
import type { Job, JobChange, JobTiming, TimingWish } from '../core/jobs.js';
import {
  clockOf,
  cronFault,
  DAY_MS,
  instantOf,
  lastSlot,
  MINUTE_MS,
  nextSlot,
  shortestGap,
  timeIn,
} from './times.js';

export interface Rules {
  /** For slots that passed while no gateway ran. */
  missed: 'once' | 'skip';
  /** `"22:00-08:00"`; null if none. */
  quietHours: string | null;
  /** Default for jobs without one. */
  timezone: string;
}

export const LONGEST_PROMPT = 4_000;
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
      return refused('What nobody asked for comes at most once a day.');
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

export function nowIn(timezone: string, now: number): string {
  return `It is now ${timeWithZone(now, timezone)}.`;
}

/** `2026-01-31 08:00 (Europe/Berlin)` */
export function timeWithZone(at: number, timezone: string): string {
  return `${createZone(timezone).time(at)} (${timezone})`;
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
