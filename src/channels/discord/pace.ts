/**
 * When a new session may be begun. Discord takes one in five seconds, and a thousand a day: whoever begins more loses
 * the token. So the pauses grow where sessions do not last.
 */
import type { Clock } from '../../core/clock.js';

const LEAST_MS = 5_000;
/** Not a thousand a day. */
const LONGEST_MS = 120_000;
const HOUR_MS = 3_600_000;
/** As many in an hour are nothing unusual. */
const EASY = 6;

export interface Pace {
  /** Resolves when it may be begun; rejects when the signal aborts before. */
  waitForIdentify(shard: number, signal: AbortSignal): Promise<void>;
}

export function createPace(clock: Clock): Pace {
  let begun: number[] = [];

  return {
    async waitForIdentify(_shard, signal) {
      begun = begun.filter((at) => clock.now() - at < HOUR_MS);
      const pause = Math.min(LONGEST_MS, LEAST_MS * 2 ** Math.max(0, begun.length - EASY));
      const last = begun.at(-1) ?? Number.NEGATIVE_INFINITY;
      await clock.sleep(last + pause - clock.now(), signal);
      if (signal.aborted) throw new Error('the connection is over');
      begun.push(clock.now());
    },
  };
}
