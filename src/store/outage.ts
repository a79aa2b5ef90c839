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
  return {
    note(error: unknown, place: string): void {
      const now = clock.now();
      since ??= now;
      if (now - saidAt < SAID_EVERY_MS) return;
      saidAt = now;
      log?.warn(
        { event: 'store unavailable', why: describe(error), place },
        'the database does not answer; waiting for it',
      );
    },
    over(place: string): void {
      if (since === null) return;
      log?.info({ event: 'store back', after_ms: clock.now() - since, place }, 'the database answers again');
      since = null;
      saidAt = Number.NEGATIVE_INFINITY;
    },
  };
}
