/** Time as an argument, so that tests need not wait to be right. Times are milliseconds since 1970 (UTC). */
export interface Clock {
  now(): number;
  /** Resolves after `ms`, or at once when the signal aborts; never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /**
   * Calls `act` after `ms`, unless what it returns is called before. For what is watched in every message and
   * hardly ever happens: a signal for it would cost more than all else about the timer.
   */
  after(ms: number, act: () => void): () => void;
}

/**
 * Why a timer is aborted that is not needed any more. Without a reason, every `abort()` makes an error with a stack,
 * which costs more than all else about a timer.
 */
export const OVER = 'over';

export const systemClock: Clock = {
  now: Date.now,
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (ms <= 0 || signal?.aborted) return resolve();
      const timer = setTimeout(done, ms);
      function done() {
        clearTimeout(timer);
        signal?.removeEventListener('abort', done);
        resolve();
      }
      signal?.addEventListener('abort', done, { once: true });
    }),
  after(ms, act) {
    const timer = setTimeout(act, ms);
    return () => clearTimeout(timer);
  },
};
