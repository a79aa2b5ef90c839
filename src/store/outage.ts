/** A database that is away, as the log tells it: once, then once a minute, and when it is back. */
import type { Clock } from '../core/clock.js';
import { describe } from '../core/errors.js';
import type { Log, Metrics } from '../core/log.js';

export type Outage = ReturnType<typeof createOutage>;

/** To whom a store tells what it does; shared by all connections of a process. */
export interface StoreReports {
  metrics: Metrics;
  outage: Outage;
  /** ms since anything; never jumps. */
  elapsed(): number;
}

const SAID_EVERY_MS = 60_000;

export function createOutage(clock: Clock, log: Log | undefined) {
  let since: number | null = null;
  let saidAt = Number.NEGATIVE_INFINITY;
  let failures = 0;
  return {
    /** How often it was noted. */
    noted: () => failures,
    note(error: unknown, place: string): void {
      const now = clock.now();
      failures += 1;
      since ??= now;
      if (now - saidAt < SAID_EVERY_MS) return;
      saidAt = now;
      log?.warn(
        { event: 'store unavailable', why: describe(error), place },
        'the database does not answer; waiting for it',
      );
    },
    /** Work has succeeded that began when it had been noted so often: what began before a failure shows nothing. */
    over(place: string, known: number): void {
      if (since === null || known !== failures) return;
      log?.info({ event: 'store back', after_ms: clock.now() - since, place }, 'the database answers again');
      since = null;
      saidAt = Number.NEGATIVE_INFINITY;
    },
  };
}
