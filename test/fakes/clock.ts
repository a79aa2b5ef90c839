/** A clock that tests move by hand: what sleeps wakes when its time comes, and not before. */
import type { Clock } from '../../src/core/clock.js';

export interface ManualClock extends Clock {
  /** Moves on, waking sleepers in the order of their times; lets what they do at once run in between. */
  advance(ms: number): Promise<void>;
  /** Resolves when something sleeps for exactly that long (of what is asleep then, and is not aborted). */
  asleep(ms: number): Promise<void>;
  /** How long those who sleep now asked to sleep. */
  sleeping(): number[];
}

interface Sleeper {
  ms: number;
  until: number;
  wake(): void;
}

export function manualClock(start = Date.UTC(2026, 0, 1)): ManualClock {
  let now = start;
  const sleepers = new Set<Sleeper>();
  let watchers: { ms: number; seen(): void }[] = [];

  /** Several turns of the event loop: enough for promises and for what setImmediate started. */
  async function settle() {
    for (let i = 0; i < 3; i++) await new Promise((resolve) => setImmediate(resolve));
  }

  function add(sleeper: Sleeper) {
    sleepers.add(sleeper);
    for (const watcher of watchers) if (watcher.ms === sleeper.ms) watcher.seen();
    watchers = watchers.filter((watcher) => watcher.ms !== sleeper.ms);
  }

  return {
    now: () => now,

    sleep: (ms, signal) =>
      new Promise((resolve) => {
        if (ms <= 0 || signal?.aborted) return resolve();
        const sleeper: Sleeper = { ms, until: now + ms, wake };
        function wake() {
          sleepers.delete(sleeper);
          signal?.removeEventListener('abort', wake);
          resolve();
        }
        signal?.addEventListener('abort', wake, { once: true });
        add(sleeper);
      }),

    after(ms, act) {
      const sleeper: Sleeper = { ms, until: now + ms, wake };
      function wake() {
        sleepers.delete(sleeper);
        act();
      }
      add(sleeper);
      return () => sleepers.delete(sleeper);
    },

    async advance(ms) {
      const end = now + ms;
      await settle();
      for (;;) {
        const due = [...sleepers].filter((sleeper) => sleeper.until <= end);
        const next = due.sort((a, b) => a.until - b.until)[0];
        if (next === undefined) break;
        now = Math.max(now, next.until);
        next.wake();
        await settle();
      }
      now = end;
    },

    asleep: (ms) =>
      new Promise((resolve) => {
        if ([...sleepers].some((sleeper) => sleeper.ms === ms)) return resolve();
        watchers.push({ ms, seen: resolve });
      }),

    sleeping: () => [...sleepers].map((sleeper) => sleeper.ms),
  };
}
