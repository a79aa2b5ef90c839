/** Deadlines and abort signals. */
import { setMaxListeners } from 'node:events';
import type { Clock } from '../../core/clock.js';

/** Runs `act` when the signal aborts; at once if it already has. Returns a function that unsubscribes. */
export function onAbort(signal: AbortSignal | undefined, act: () => void): () => void {
  if (signal === undefined) return () => {};
  if (signal.aborted) {
    act();
    return () => {};
  }
  // One caller's signal has a listener per call under way: no leak, so Node need not warn.
  setMaxListeners(0, signal);
  signal.addEventListener('abort', act, { once: true });
  return () => signal.removeEventListener('abort', act);
}

/** Runs the work with a signal that aborts with the given one, or after `ms`. */
export async function withDeadline<T>(
  clock: Clock,
  ms: number,
  signal: AbortSignal | undefined,
  work: (ended: AbortSignal) => Promise<T>,
): Promise<T> {
  const over = new AbortController();
  const end = () => over.abort();
  const unlisten = onAbort(signal, end);
  const cancelDeadline = clock.after(ms, end);
  try {
    return await work(over.signal);
  } finally {
    cancelDeadline();
    unlisten();
  }
}
