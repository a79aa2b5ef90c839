/** Keeps a channel connected, and tracks its status: connected or not, since when, and the last error. */

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
    /** null: no error. */
    down: (reason: string | null) => become(false, reason),
    status: (): ChannelStatus => status,
  };
}

const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;

/** 1 s, doubled each time, up to a minute. `failures`: earlier failures in a row. */
export function backoffMs(failures: number): number {
  return backoff(failures + 1, FIRST_PAUSE_MS, LONGEST_PAUSE_MS);
}

export interface Setback {
  reason: string;
  /** Everything worked in between: the back-off is reset. */
  first?: boolean;
  /** Replaces the usual pause; 0 retries at once. */
  pauseMs?: number;
}

/** Runs rounds of work with exponential back-off until the signal aborts; no error ends it. Never rejects. */
export async function supervise<Ended extends Setback>(parts: {
  /** Works until a failure and returns it; null if there was none. Never rejects. */
  round(failures: number): Promise<Ended | null>;
  /** Tells the operator. `failures` includes this one. */
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
    const { reason, first = false } = setback;
    if (first) failures = 0;
    const pauseMs = setback.pauseMs ?? backoffMs(failures);
    failures += 1;
    state.down(reason);
    parts.log(setback, { reason, failures, pauseMs });
    await clock.sleep(pauseMs, signal);
  }
}
