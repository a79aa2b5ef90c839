/** Exponential back-off. `attempt`: failures in a row, from 1. `random` shortens a pause by up to a quarter. */
export function backoff(attempt: number, first: number, most: number, random?: () => number): number {
  const pause = Math.min(most, first * 2 ** Math.max(0, attempt - 1));
  return random === undefined ? pause : Math.round(pause * (1 - random() / 4));
}

/** Attempts without an outcome, counted before each one, after which work is parked and people are told. */
const MOST_ATTEMPTS = 5;

/** `attempts`: earlier attempts without an outcome. */
export function mayTry(attempts: number): boolean {
  return attempts < MOST_ATTEMPTS;
}

/** From so many crashes on, turns and updates are taken one at a time: the one that ends the process then ends it alone. */
export const SUSPECT = 3;
