/** How long a turn waits for a flush and its compaction together; after it, what leaves a window is archived instead. */
import { type Clock, OVER } from '../../core/clock.js';

export const DEADLINE_MS = 60_000;

/** A signal that aborts with `signal`, or after `ms`. Call `over` when the work has ended. */
export function deadline(
  clock: Clock,
  signal: AbortSignal,
  ms: number,
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
