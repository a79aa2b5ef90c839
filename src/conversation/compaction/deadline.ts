/** How long a flush and what belongs to it may take in all: then what leaves a window is archived instead. */
import { type Clock, OVER } from '../../core/clock.js';

export const DEADLINE_MS = 60_000;

/** A signal that aborts with another, or when the deadline is over. `over` must be called when the work is. */
export function deadline(
  clock: Clock,
  signal: AbortSignal,
  ms = DEADLINE_MS,
): { signal: AbortSignal; over(): void } {
  const late = new AbortController();
  const end = () => late.abort(OVER);
  if (signal.aborted) end();
  signal.addEventListener('abort', end, { once: true });
  const cancel = clock.after(ms, end);
  return {
    signal: late.signal,
    over() {
      cancel();
      signal.removeEventListener('abort', end);
    },
  };
}
