/**
 * The waits that Discord asks for (429), kept to before a call is made: by kind of call, or for all of them. However short it
 * says that one is, the pauses between refusals in a row grow.
 */
import type { Clock } from '../../core/clock.js';
import { bounded } from '../kit/bounded.js';
import { backoffMs } from '../kit/supervise.js';
import type { Failure } from './failure.js';

/** How many kinds of call are remembered; older ones go. */
const MOST_NOTED = 1_000;
/** Whoever asks for more is not believed. */
const LONGEST_MS = 7 * 24 * 3_600_000;
/** A wait that a person would ask about. */
export const LONG_WAIT_MS = 60_000;

export function createLimits(clock: Clock) {
  const rows = bounded<string, { refusals: number; until: number; reason: string }>(MOST_NOTED);
  const ALL = '';

  return {
    /** Why such a call is not made now; null where it may be. */
    reason(kind: string): Failure | null {
      const until = Math.max(rows.get(kind)?.until ?? 0, rows.get(ALL)?.until ?? 0);
      const row = rows.get(rows.get(kind)?.until === until ? kind : ALL);
      const retryAfterMs = until - clock.now();
      if (row === undefined || retryAfterMs <= 0) return null;
      return { reason: row.reason, code: null, status: 429, retryAfterMs };
    },

    /** Such a call was refused; what is to be said of it. */
    refused(kind: string, isGlobal: boolean, failure: Failure): Failure {
      const key = isGlobal ? ALL : kind;
      const refusals = (rows.get(key)?.refusals ?? 0) + 1;
      const retryAfterMs = Math.max(Math.min(failure.retryAfterMs ?? 0, LONGEST_MS), backoffMs(refusals - 1));
      const until = clock.now() + retryAfterMs;
      const which = isGlobal ? 'of all calls' : 'of this kind of call';
      // Read long after it was written: it says when, not how long.
      const when =
        retryAfterMs < LONG_WAIT_MS
          ? `for ${Math.ceil(retryAfterMs / 1000)} s`
          : `until ${new Date(until).toISOString().slice(0, 19)}Z`;
      const reason = `Discord limits the rate ${which}, ${when}`;
      rows.set(key, { refusals, until, reason });
      return { ...failure, reason, retryAfterMs };
    },

    /** Such a call was answered. One that was made before the wait began does not end it. */
    served(kind: string): void {
      for (const key of [kind, ALL]) {
        if ((rows.get(key)?.until ?? 0) <= clock.now()) rows.delete(key);
      }
    },
  };
}
