/**
 * How many documents may be in the queue at once. The queue is first in, first out, and somebody's question stands
 * behind all of them: as many as come back within about a second, so that a slow GPU holds few and a fast one many.
 */
export interface Flight {
  /** How many more may leave now. */
  free(): number;
  left(count: number): void;
  /** One is back, or given up; `ms` is how long it took. */
  landed(ms: number): void;
}

const FEWEST = 8;
const BEGIN = 64;
const MOST = 512;
const QUICK_MS = 300;
const SLOW_MS = 1_000;

export function createFlight(): Flight {
  let most = BEGIN;
  let inFlight = 0;
  /** Those that were in flight when it was last lowered tell nothing new. */
  let stale = 0;

  return {
    free: () => Math.max(0, most - inFlight),
    left(count) {
      inFlight += count;
    },
    landed(ms) {
      // More only helps when all of it was used.
      const full = inFlight >= most;
      inFlight -= 1;
      if (stale > 0) stale -= 1;
      else if (ms > SLOW_MS) {
        most = Math.max(FEWEST, most >> 1);
        stale = inFlight;
      } else if (ms < QUICK_MS && full) most = Math.min(MOST, most + 8);
    },
  };
}
