/**
 * How many turns run side by side, for step 2. Most share. A turn that the process has died of several times runs
 * alone, so that no other turn is blamed for its end; it lets everybody else go first, but not for long, and what
 * ends a process does so soon, so after a while others may run beside it.
 */
import type { Clock } from '../core/clock.js';

const ALONE_WITHIN_MS = 5_000;
const ALONE_AT_MOST_MS = 10_000;

export interface Slots {
  /** Resolves when the turn may run; call what it resolves to when it is over. */
  enter(manner: 'shared' | 'alone'): Promise<() => void>;
}

export function createSlots(most: number, clock: Clock): Slots {
  const shared: (() => void)[] = [];
  const alone: (() => void)[] = [];
  let used = 0;
  /** One that wants to run alone has waited long enough: nobody else begins before it. */
  let impatient = 0;

  function admitNext(): void {
    while (impatient === 0 && shared.length > 0 && used < most) {
      used++;
      shared.shift()?.();
    }
    if (used === 0 && alone.length > 0) {
      used = most;
      alone.shift()?.();
    }
  }

  function enterShared(): Promise<() => void> {
    return new Promise((resolve) => {
      shared.push(() => resolve(once(() => giveBack(1))));
      admitNext();
    });
  }

  function enterAlone(): Promise<() => void> {
    return new Promise((resolve) => {
      let counted = false;
      let held = most;
      alone.push(() => {
        cancelImpatience();
        if (counted) impatient--;
        const cancelLimit = clock.after(ALONE_AT_MOST_MS, () => {
          held = 1;
          giveBack(most - 1);
        });
        resolve(
          once(() => {
            cancelLimit();
            giveBack(held);
          }),
        );
      });
      const cancelImpatience = clock.after(ALONE_WITHIN_MS, () => {
        counted = true;
        impatient++;
        admitNext();
      });
      admitNext();
    });
  }

  function giveBack(amount: number): void {
    used -= amount;
    admitNext();
  }

  return { enter: (manner) => (manner === 'shared' ? enterShared() : enterAlone()) };
}

function once(act: () => void): () => void {
  let done = false;
  return () => {
    if (done) return;
    done = true;
    act();
  };
}
