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
