/** The time that a task may take. While it waits for a person, none of it is used. */
import type { Clock } from '../core/clock.js';

export interface TimeBudget {
  /** It waits for a person, or goes on. */
  waits(isWaiting: boolean): void;
  /** The task is over: nothing expires any more. */
  end(): void;
}

export function startTimeBudget(clock: Clock, ms: number, expire: () => void): TimeBudget {
  let left = ms;
  let since = clock.now();
  let isOver = false;
  let cancel: (() => void) | null = clock.after(left, expire);

  function pause(): void {
    if (cancel === null) return;
    cancel();
    cancel = null;
    left -= Math.max(0, clock.now() - since);
  }

  function goOn(): void {
    if (cancel !== null || isOver) return;
    since = clock.now();
    cancel = clock.after(Math.max(0, left), expire);
  }

  return {
    waits: (isWaiting) => (isWaiting ? pause() : goOn()),
    end() {
      isOver = true;
      cancel?.();
      cancel = null;
    },
  };
}
