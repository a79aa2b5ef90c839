/** Fires jobs when they are due. Limits those that run at once, so that messages are answered. */
import { type Clock, OVER } from '../core/clock.js';
import { inOneLine } from '../core/cut.js';
import { timeWithZone } from '../core/dates.js';
import { type ChatId, type PersonaId, roomParts } from '../core/ids.js';
import type { EndedRun, Firing, Job, JobAccess, JobRooms, JobStore, ParkedFor } from '../core/jobs.js';
import type { Log, Metrics } from '../core/log.js';
import { afterFailure, latestOf, MINUTE_MS, nextOf, outOfQuiet, type Rules } from './plan.js';

export interface ClockParts {
  store: JobStore;
  rooms: JobRooms;
  door: JobAccess;
  personas: { get(chatId: ChatId, personaId: PersonaId): Promise<unknown> };
  channels: string[];
  rules: Rules;
  alarm: JobAlarm;
  clock: Clock;
  log: Log;
  metrics: Metrics;
}

type JobAlarm = ReturnType<typeof createAlarm>;

/** The clock may jump, and other processes write to the store. */
const LOOK_EVERY_MS = 60_000;
/** Pause while more jobs are due than may run at once; LONG_PAUSE_MS while the limit is reached. */
const PAUSE_MS = 100;
const LONG_PAUSE_MS = 500;
/** Check interval during runs, whose outcome must be counted and shown by `history`. */
const RUNNING_MS = 1_000;
/** Half of the rooms that may work at once; the rest are for people. */
const MOST_WORKING = 50;
const MOST_A_STEP = 20;
/** Older runs do not count against the limit: their channel may be gone. */
const FORGET_AFTER_MS = 3_600_000;
/** A job due so shortly before the start does not count as missed. */
const GRACE_MS = 1_000;
/** Timers are late under load; beyond this, the machine slept or its clock was set. */
const LATE_MS = 30_000;

/** Wakes the clock when the next due time may have changed. */
export function createAlarm() {
  let rung = false;
  let wake = () => {};
  return {
    look(): void {
      rung = true;
      wake();
    },
    /** Resolves when woken or after `ms`. */
    async wait(clock: Clock, ms: number): Promise<void> {
      const woken = new AbortController();
      wake = () => woken.abort(OVER);
      if (!rung) await clock.sleep(ms, woken.signal);
      wake = () => {};
      rung = false;
    },
  };
}

/** Returns a function that stops it. `startedAt`: earlier slots count as missed. */
export function startJobs(parts: ClockParts, startedAt: number): () => Promise<void> {
  const over = new AbortController();
  const running = keepLooking(parts, startedAt, over.signal);
  return async () => {
    over.abort(OVER);
    parts.alarm.look();
    await running;
  };
}

async function keepLooking(parts: ClockParts, startedAt: number, signal: AbortSignal): Promise<void> {
  const { clock, log, alarm } = parts;
  /** Since when it has checked without a gap. */
  let awakeSince = startedAt;
  let expected = startedAt;
  while (!signal.aborted) {
    const now = clock.now();
    if (now > expected + LATE_MS) awakeSince = now;
    let wait = LOOK_EVERY_MS;
    try {
      wait = await look(parts, awakeSince, signal);
    } catch (error) {
      log.error({ err: error }, 'checking scheduled tasks failed; retrying');
    }
    expected = clock.now() + wait;
    await alarm.wait(clock, wait);
  }
}

/** Settles ended runs and fires due jobs. Resolves with the time until the next check, in ms. */
export async function look(parts: ClockParts, awakeSince: number, signal: AbortSignal): Promise<number> {
  const { store, clock, channels, rooms, log } = parts;
  const now = clock.now();
  const { ahead, ended, working } = await store.openRuns({ channels, since: now - FORGET_AFTER_MS, now });
  await afterClockWentBack(parts, ahead, now);
  await Promise.all(ended.map((run) => settle(parts, run)));

  const most = Math.max(0, Math.min(MOST_A_STEP, MOST_WORKING - working));
  const { due, nextAt } = await store.dueJobs({ channels, now, most });
  const fired: Job[] = [];
  // In parallel, so that their writes share a transaction.
  await Promise.all(
    due.map(async (job) => {
      if (signal.aborted) return;
      try {
        if (await isFired(parts, job, now, awakeSince)) fired.push(job);
      } catch (error) {
        log.error(
          { err: error, chat: job.chatId, task: job.n },
          'starting a scheduled task failed; retrying in a minute',
        );
        // Postponed, so that it does not block the others.
        await store.changeJob({ id: job.id, from: ['active'] }, { nextAt: now + LOOK_EVERY_MS }, now);
      }
    }),
  );
  if (fired.length > 0) await rooms.fired([...new Set(fired.map(({ room }) => room))]);

  // Those that were due may be due again soon.
  const longest = due.length > 0 || working > 0 ? RUNNING_MS : LOOK_EVERY_MS;
  if (nextAt === null) return longest;
  if (nextAt <= now) return fired.length > 0 ? PAUSE_MS : LONG_PAUSE_MS;
  return Math.min(longest, Math.max(1, nextAt - clock.now()));
}

async function isFired(parts: ClockParts, job: Job, now: number, awakeSince: number): Promise<boolean> {
  const { store, rules, metrics } = parts;
  if (await parkedInstead(parts, job)) return false;
  const firing = firingOf(job, { rules, now, awakeSince });
  if ('until' in firing) {
    await store.changeJob({ id: job.id, from: ['active'] }, { nextAt: firing.until }, now);
    return false;
  }
  const became = await store.fireJob(firing);
  if (became === 'skipped') metrics.count('job_runs_total', { outcome: 'skipped' });
  return became === 'fired';
}

/** How to fire a due job, or until when to postpone it. */
export function firingOf(
  job: Job,
  { rules, now, awakeSince }: { rules: Rules; now: number; awakeSince: number },
): Firing | { until: number } {
  const due = job.nextAt ?? now;
  const until = outOfQuiet(now, job, rules);
  if (until > now) return { until };
  const attempt = job.retryOf === null ? 0 : job.failures;
  const slot = job.retryOf ?? latestOf(job, due, now);
  const isMissed = slot < awakeSince - GRACE_MS && attempt === 0;
  const head = isMissed && rules.missed === 'skip' ? null : headOf(job, { slot, attempt, now });
  const nextAt = nextOf(job, rules, Math.max(now, due));
  const state = nextAt === null ? ('done' as const) : ('active' as const);
  return { seen: job, slot, attempt, head, becomes: { state, nextAt, retryOf: null }, now };
}

/** Parks a job whose requester lost access or whose persona is gone. Resolves with whether it did. */
async function parkedInstead(parts: ClockParts, job: Job): Promise<boolean> {
  const { store, rooms, door, personas, clock, log } = parts;
  const { id, n, chatId, room, personaId } = job;
  const isAdmitted = !job.guarded || (await door.admits(job));
  const isHere = isAdmitted && (await personas.get(roomParts(room).chatId, personaId)) !== null;
  if (isHere) return false;
  const why = isAdmitted ? 'persona' : 'access';
  log.warn({ chat: chatId, task: n, why }, 'scheduled task parked');
  // Without access, no message is sent either.
  if (isAdmitted) await rooms.say({ room, origin: `job:${id}:${job.nextAt}`, text: parkedWords(job, why) });
  const parked = { state: 'parked', why, nextAt: null, retryOf: null } as const;
  await store.changeJob({ id, from: ['active'] }, parked, clock.now());
  return true;
}

async function settle(parts: ClockParts, run: EndedRun): Promise<void> {
  const { store, rooms, clock, log, metrics } = parts;
  const { job, slot, attempt, outcome } = run;
  const now = clock.now();
  const then =
    outcome === 'failed'
      ? afterFailure(job, { slot, at: run.endedAt, now })
      : { failures: 0, ...(job.retryOf === slot ? { retryOf: null } : {}) };
  if ('state' in then && then.state === 'parked') {
    log.warn({ chat: job.chatId, task: job.n, why: 'failed' }, 'scheduled task parked');
    const origin = `job:${job.id}:${slot}:${attempt}`;
    await rooms.say({ room: job.room, origin, text: parkedWords(job, 'failed') });
  }
  if (await store.changeJob({ ended: run }, then, now)) {
    metrics.count('job_runs_total', { outcome });
  }
}

/** After the clock went back, jobs fired ahead of time are planned again; no slot is claimed twice. */
async function afterClockWentBack(
  { store, rules, log }: ClockParts,
  ahead: Job[],
  now: number,
): Promise<void> {
  for (const job of ahead) {
    const nextAt = nextOf(job, rules, now);
    if (nextAt === null || job.nextAt === null || nextAt >= job.nextAt) continue;
    await store.changeJob({ id: job.id, from: ['active'] }, { nextAt, retryOf: null }, now);
  }
  if (ahead.length > 0) log.warn({ tasks: ahead.length }, 'clock went back; scheduled tasks planned again');
}

/** Precedes the prompt, so that it is not taken for something said now. */
export function headOf(
  job: Job,
  { slot, attempt, now }: { slot: number; attempt: number; now: number },
): string {
  const { n, followUp, senderName, createdAt, timezone, kind, value } = job;
  const when = timeWithZone(slot, timezone);
  const often = kind === 'cron' ? `, as it is by the cron line ${value}` : '';
  const late =
    now - slot >= MINUTE_MS ? ` It could not be done then: it is now ${timeWithZone(now, timezone)}.` : '';
  const again = attempt > 0 ? ' It was tried before, and failed.' : '';
  const set = timeWithZone(createdAt, timezone);
  const by = followUp
    ? `You set it yourself on ${set}.`
    : `${senderName === '' ? 'It was asked for' : `${inOneLine(senderName, 60)} asked for it`} on ${set}.`;
  return (
    `Scheduled task ${n} was due at ${when}${often}.${late}${again} ${by} Nobody has said anything now; do what it ` +
    `says, and speak to those who are here. The task:`
  );
}

function parkedWords(job: Job, why: ParkedFor): string {
  const { n, prompt, personaId } = job;
  const what = `Scheduled task ${n} (“${inOneLine(prompt, 200)}”)`;
  const ends = `/schedule resume ${n} starts it again, /schedule cancel ${n} ends it.`;
  switch (why) {
    case 'failed':
      return `${what} failed four times in a row and is parked. ${ends}`;
    case 'persona':
      return `${what} is parked: its persona ${personaId} is gone. /schedule cancel ${n} ends it.`;
    case 'access':
      return `${what} is parked: the person who asked for it may no longer talk here. /schedule cancel ${n} ends it.`;
  }
}
