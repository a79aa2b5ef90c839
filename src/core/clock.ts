/** Time as an argument, so that tests need not wait. Times are milliseconds since 1970 (UTC). */
export interface Clock {
  now(): number;
  /** Resolves after `ms`, or at once when the signal aborts; never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /**
   * Calls `act` after `ms`, unless the returned function cancels it before. For timers that are set for every message
   * and hardly ever fire: an abort signal would cost more than the timer itself.
   */
  after(ms: number, act: () => void): () => void;
}

/**
 * The abort reason for timers that are no longer needed. Without a reason, `abort()` creates an error with a stack,
 * which costs more than the timer itself.
 */
export const OVER = 'over';

/** Node's timers hold no more than this, 24.8 days, and fire at once when given more. The clock waits longer in pieces. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;

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
