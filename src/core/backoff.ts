/**
 * Exponential back-off: how long to wait before the next try. `attempt` counts the failures in a row, from 1: the first
 * pause is `first`, every further one twice as long, none longer than `most` (ms). With `random` a pause is up to a
 * quarter shorter, so that many that failed together do not come back together.
 */
export function backoff(attempt: number, first: number, most: number, random?: () => number): number {
  const pause = Math.min(most, first * 2 ** Math.max(0, attempt - 1));
  return random === undefined ? pause : Math.round(pause * (1 - random() / 4));
}
