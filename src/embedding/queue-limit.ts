/**
 * How many documents a requester may have in the queue at once. The queue is first in, first out, and somebody's
 * question stands behind all of them: so as many as come back within about a second, few from a slow GPU, many from a
 * fast one.
 */
const FEWEST = 8;
const BEGIN = 64;
const MOST = 512;
const QUICK_MS = 300;
const SLOW_MS = 1_000;

export function createQueueLimit() {
  let most = BEGIN;
  let inQueue = 0;
  /** Those that were in the queue when it was last lowered say nothing new. */
  let stale = 0;

  return {
    /** How many more may be pushed now. */
    free: () => Math.max(0, most - inQueue),
    pushed(count: number): void {
      inQueue += count;
    },
    /** One was answered or given up after so long. */
    answered(ms: number): void {
      // More only helps when all of it was used.
      const full = inQueue >= most;
      inQueue -= 1;
      if (stale > 0) stale -= 1;
      else if (ms > SLOW_MS) {
        most = Math.max(FEWEST, most >> 1);
        stale = inQueue;
      } else if (ms < QUICK_MS && full) most = Math.min(MOST, most + 8);
    },
  };
}
