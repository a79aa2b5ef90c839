/**
 * Exponential back-off. `attempt`: failures in a row, from 1. The first pause is `first` ms, each further one twice as
 * long, at most `most` ms. `random` shortens a pause by up to a quarter, so that simultaneous failures do not retry
 * together.
 */
export function backoff(attempt: number, first: number, most: number, random?: () => number): number {
  const pause = Math.min(most, first * 2 ** Math.max(0, attempt - 1));
  return random === undefined ? pause : Math.round(pause * (1 - random() / 4));
}

// Guards against work that crashes the process each time. The count is stored with the work (a turn, a command, a
// flush, a batch of updates) before each attempt.

/** Attempts without an outcome after which work is parked and people are told. */
const MOST_ATTEMPTS = 5;

/** `attempts`: earlier attempts without an outcome. */
export function mayTry(attempts: number): boolean {
  return attempts < MOST_ATTEMPTS;
}

/** From so many crashes on, turns run one after the other: whichever ends the process then, ends it alone. */
export const SUSPECT = 3;
