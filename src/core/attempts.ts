/**
 * Guards against work that ends the process each time it is tried. The count is kept with the work itself (a turn, a command,
 * a flush, a batch of updates) and is stored before each attempt.
 */

/** Work that was tried this often without an outcome is parked, and people are told. */
export const MOST_ATTEMPTS = 5;

/** `attempts`: how often it was tried before without an outcome. */
export function mayTry(attempts: number): boolean {
  return attempts < MOST_ATTEMPTS;
}
