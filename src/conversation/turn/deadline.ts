/**
 * Step 5 of the route: how long a call may take. At its time, and when the turn is aborted, its signal says so; what does
 * not end then within a few seconds is left to itself.
 */
import type { Clock } from '../../core/clock.js';

/** The time in which whatever was aborted should have ended. */
const GRACE_MS = 5_000;

export interface Timed<T> {
  /** null: it did not end even though it was aborted. */
  result: T | null;
  /** Its time had run out. */
  isLate: boolean;
}

/** Rejects as the work does, if that ends in time to be heard. */
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
  const given = new Promise<null>((resolve) => {
    const wait = () => {
      cancel();
      cancel = clock.after(GRACE_MS, () => resolve(null));
    };
    if (own.signal.aborted) wait();
    else own.signal.addEventListener('abort', wait, { once: true });
  });
  try {
    const done = work(own.signal);
    // Whoever is left to themselves may fail later, which nobody hears.
    done.catch(() => {});
    return { result: await Promise.race([done, given]), isLate };
  } finally {
    cancel();
    signal.removeEventListener('abort', abort);
  }
}
