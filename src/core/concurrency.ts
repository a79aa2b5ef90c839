/**
 * Who goes when, where much is under way at once: at most so many side by side, one in each pass of the event loop, or
 * whoever waits until all is over.
 */

export interface Slots {
  /** Resolves when it is one's turn, with what ends it. */
  enter(): Promise<() => void>;
}

/** A semaphore: at most `most` at once; the others wait in order of arrival. */
export function createSlots(most: number): Slots {
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

/** Lets shutdown code wait until all work of one kind is done. The worker calls `changed` whenever some of it ends. */
export interface Idle {
  /** Some work ended: re-check what callers of `until` wait for. */
  changed(): void;
  /** Resolves once the condition holds; it is re-checked at every `changed`. */
  until(holds: () => boolean): Promise<void>;
}

export function createIdle(): Idle {
  let waiting: (() => void)[] = [];
  return {
    changed() {
      const told = waiting;
      waiting = [];
      for (const resolve of told) resolve();
    },
    async until(holds) {
      while (!holds()) await new Promise<void>((resolve) => waiting.push(resolve));
    },
  };
}
