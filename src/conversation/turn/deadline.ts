/**
 * Step 5 of the route: how long a call may take. At its time, and when the turn is aborted, its signal says so; what does
 * not end then within a few seconds is left to itself.
 */
import type { Clock } from '../../core/clock.js';

/** The time in which whatever was aborted should have ended. */
const GRACE_MS = 5_000;

/** `isLate`: its time had run out. */
export type Timed<T> =
  | { kind: 'done'; result: T }
  | { kind: 'failed'; error: unknown; isLate: boolean }
  /** It did not end even though it was aborted. */
  | { kind: 'left'; isLate: boolean };

export async function withinTime<T>(
  { clock, ms, signal }: { clock: Pick<Clock, 'after'>; ms: number; signal: AbortSignal },
  work: (signal: AbortSignal) => Promise<T>,
): Promise<Timed<T>> {
  const own = new AbortController();
  let isLate = false;
  let cancel = clock.after(ms, () => {
    isLate = true;
    own.abort();
  });
  const abort = () => own.abort(signal.reason);
  if (signal.aborted) abort();
  else signal.addEventListener('abort', abort, { once: true });
  const left = new Promise<Timed<T>>((resolve) => {
    const wait = () => {
      cancel();
      cancel = clock.after(GRACE_MS, () => resolve({ kind: 'left', isLate }));
    };
    if (own.signal.aborted) wait();
    else own.signal.addEventListener('abort', wait, { once: true });
  });
  try {
    const ended = work(own.signal).then(
      (result): Timed<T> => ({ kind: 'done', result }),
      (error: unknown): Timed<T> => ({ kind: 'failed', error, isLate }),
    );
    return await Promise.race([ended, left]);
  } finally {
    cancel();
    signal.removeEventListener('abort', abort);
  }
}
