import { setMaxListeners } from 'node:events';

/** Time as a parameter, so that tests need not wait. All times are ms since 1970 (UTC). */
export interface Clock {
  now(): number;
  /** Resolves after `ms`, or at once when the signal aborts. Never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Returns the function that cancels it. Cheaper than an abort signal. */
  after(ms: number, act: () => void): () => void;
}

/** Abort reason for timers that are no longer needed: without one, `abort()` makes a costly stack trace. */
export const OVER = 'over';

/** Node's limit for a timer, 24.8 days; longer ones fire at once. The clock splits longer waits. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: Date.now,
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (ms <= 0 || signal?.aborted) return resolve();
      const cancel = systemClock.after(ms, done);
      function done() {
        cancel();
        signal?.removeEventListener('abort', done);
        resolve();
      }
      signal?.addEventListener('abort', done, { once: true });
    }),
  after(ms, act) {
    let left = ms;
    const wait = () => {
      const piece = Math.min(left, LONGEST_TIMER_MS);
      left -= piece;
      return setTimeout(left > 0 ? again : act, piece);
    };
    const again = () => {
      timer = wait();
    };
    let timer = wait();
    return () => clearTimeout(timer);
  },
};

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

/** A lease expires after this time unless renewed. */
export const LEASE_MS = 60_000;

/** A claim by this process, from now on. */
export function leaseOf({ owner, clock }: { owner: string; clock: Clock }) {
  return { owner, now: clock.now(), leaseMs: LEASE_MS };
}

/** Resolves when the work is done, after `ms`, or when the signal aborts. Rejects only with the work. */
export async function orAfter(
  work: Promise<unknown>,
  ms: number,
  clock: Clock,
  signal?: AbortSignal,
): Promise<void> {
  const patience = new AbortController();
  const both = signal === undefined ? patience.signal : AbortSignal.any([patience.signal, signal]);
  await Promise.race([work, clock.sleep(ms, both)]);
  patience.abort(OVER);
}

/** null as soon as the signal aborts; later results and errors of `work` are ignored. */
export function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T | null> {
  return new Promise((resolve, reject) => {
    const stopListening = onAbort(signal, () => resolve(null));
    work.then(resolve, reject).finally(stopListening);
  });
}
