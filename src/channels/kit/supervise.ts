/** Keeps a channel connected, and tells its status: connected or not, since when, and what was wrong last. */

import type { ChannelStatus } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';
import { backoff } from '../../core/retry.js';

export type State = ReturnType<typeof createState>;

export function createState(clock: Clock) {
  let status: ChannelStatus = { connected: false, since: clock.now(), lastError: null };

  function become(connected: boolean, lastError: string | null): void {
    const since = connected === status.connected ? status.since : clock.now();
    status = { connected, since, lastError };
  }

  return {
    up: () => become(true, status.lastError),
    /** null: nothing was wrong. */
    down: (reason: string | null) => become(false, reason),
    status: (): ChannelStatus => status,
  };
}

const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;

/** 1 second, then twice as long each time, up to a minute. `failures`: how many there were in a row before. */
export function backoffMs(failures: number): number {
  return backoff(failures + 1, FIRST_PAUSE_MS, LONGEST_PAUSE_MS);
}

/** Why a round of the work ended. */
export interface Setback {
  reason: string;
  /** All went well in between: pauses begin with the shortest again. */
  first?: boolean;
  /** Instead of the usual pause; 0 begins anew at once. */
  pauseMs?: number | ((failures: number) => number);
}

/**
 * Runs rounds of work until the signal aborts, with exponential back-off after failures. An outage, a refused token and
 * another program on the same account never end it. Never rejects.
 */
export async function supervise<Ended extends Setback>(parts: {
  /** Works until something is wrong, and says what; null when nothing is. Never rejects. */
  round(failures: number): Promise<Ended | null>;
  /** Tells the operator. `failures` counts this one, too. */
  log(setback: Ended, told: { reason: string; failures: number; pauseMs: number }): void;
  state: State;
  clock: Clock;
  signal: AbortSignal;
}): Promise<void> {
  const { round, state, clock, signal } = parts;
  let failures = 0;
  while (!signal.aborted) {
    const setback = await round(failures);
    if (signal.aborted) break;
    if (setback === null) {
      failures = 0;
      continue;
    }
    const { reason, first = false, pauseMs: wanted = backoffMs } = setback;
    if (first) failures = 0;
    const pauseMs = typeof wanted === 'number' ? wanted : wanted(failures);
    failures += 1;
    state.down(reason);
    parts.log(setback, { reason, failures, pauseMs });
    await clock.sleep(pauseMs, signal);
  }
}
