/**
 * When to try again, and how often.
 *
 * Exponential back-off: how long to wait before the next try. `attempt` counts the failures in a row, from 1: the first
 * pause is `first`, every further one twice as long, none longer than `most` (ms). With `random` a pause is up to a
 * quarter shorter, so that many that failed together do not come back together.
 */
export function backoff(attempt: number, first: number, most: number, random?: () => number): number {
  const pause = Math.min(most, first * 2 ** Math.max(0, attempt - 1));
  return random === undefined ? pause : Math.round(pause * (1 - random() / 4));
}

// Guards against work that ends the process each time it is tried. The count is kept with the work itself (a turn, a command,
// a flush, a batch of updates) and is stored before each attempt.

/** Work that was tried this often without an outcome is parked, and people are told. */
const MOST_ATTEMPTS = 5;

/** `attempts`: how often it was tried before without an outcome. */
export function mayTry(attempts: number): boolean {
  return attempts < MOST_ATTEMPTS;
}
