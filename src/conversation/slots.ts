/**
 * How many turns run side by side, for step 2. Most share; a turn that the process has died of several times
 * runs alone, so that no other turn is blamed for its end. First come, first served, so nobody starves.
 */
export interface Slots {
  /** Resolves when the turn may run; call what it resolves to when it is over. */
  enter(manner: 'shared' | 'alone'): Promise<() => void>;
}

export function createSlots(most: number): Slots {
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
        const weight = manner === 'alone' ? most : 1;
        let left = false;
        const leave = () => {
          if (left) return;
          left = true;
          used -= weight;
          admitNext();
        };
        queue.push({ weight, start: () => resolve(leave) });
        admitNext();
      }),
  };
}
