/** Step 2 of the route: how many runs there may be at once, and how they begin one after the other. */

/** A semaphore: at most `most` at once; the others wait in order of arrival. */
export function createSlots(most: number): { enter(): Promise<() => void> } {
  const waiting: (() => void)[] = [];
  let used = 0;

  function leave(): void {
    const next = waiting.shift();
    if (next) next();
    else used--;
  }

  return {
    async enter() {
      if (used < most) used++;
      else await new Promise<void>((resolve) => waiting.push(resolve));
      let left = false;
      return () => {
        if (!left) leave();
        left = true;
      };
    },
  };
}

/** Resolves each call in its own pass of the event loop, in order of the calls. */
export function createPasses(): () => Promise<void> {
  let last = Promise.resolve();
  return () => {
    last = last.then(() => new Promise((resolve) => setImmediate(resolve)));
    return last;
  };
}
