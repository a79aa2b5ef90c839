/**
 * How many turns run side by side, for step 2. Most share; a turn that the process has died of several times
 * runs alone, so that no other turn is blamed for its end. First come, first served, so nobody starves; and
 * what ends a process does so soon, so after a while others may run beside it.
 */
import { type Clock, OVER } from '../core/clock.js';

export interface Slots {
  /** Resolves when the turn may run; call what it resolves to when it is over. */
  enter(manner: 'shared' | 'alone'): Promise<() => void>;
}

const ALONE_AT_MOST_MS = 10_000;

export function createSlots(most: number, clock: Clock): Slots {
  const queue: { weight: number; start: () => void }[] = [];
  let used = 0;

  function admitNext(): void {
    for (let first = queue[0]; first && used + first.weight <= most; first = queue[0]) {
      queue.shift();
      used += first.weight;
      first.start();
    }
  }

  return {
    enter: (manner) =>
      new Promise((resolve) => {
        let weight = manner === 'alone' ? most : 1;
        const left = new AbortController();
        const giveBack = (amount: number) => {
          weight -= amount;
          used -= amount;
          admitNext();
        };
        const leave = () => {
          if (left.signal.aborted) return;
          left.abort(OVER);
          giveBack(weight);
        };
        const start = () => {
          resolve(leave);
          if (manner === 'shared') return;
          void clock.sleep(ALONE_AT_MOST_MS, left.signal).then(() => {
            if (!left.signal.aborted) giveBack(weight - 1);
          });
        };
        queue.push({ weight, start });
        admitNext();
      }),
  };
}
