/** Mutexes, semaphores, passes of the event loop, and lazily made values. */

export type Mutex = <Result>(work: () => Promise<Result> | Result) => Promise<Result>;

/** In call order; a failure affects only its own caller. Not reentrant. */
export function createMutex(): Mutex {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const mine = last.then(work);
    last = mine.catch(() => {});
    return mine;
  };
}

/**
 * After all earlier work under the same name; on PostgreSQL, of other gateways, too. Not reentrant. Under the name of a
 * folder, which ends in `/`, those of files may be taken, but not the other way.
 */
export type Exclusive = <Result>(name: string, work: () => Promise<Result>) => Promise<Result>;

/** Code that changes the same files in this process must share one instance. */
export function locks(): Exclusive {
  const last = new Map<string, Promise<unknown>>();
  return async (name, work) => {
    const mine = (last.get(name) ?? Promise.resolve()).catch(() => {}).then(work);
    last.set(name, mine);
    try {
      return await mine;
    } finally {
      if (last.get(name) === mine) last.delete(name);
    }
  };
}

export type Slots = ReturnType<typeof createSlots>;

/** A semaphore: first come first served. */
export function createSlots(most: number) {
  const waiting: (() => void)[] = [];
  let used = 0;

  function leave(): void {
    const next = waiting.shift();
    if (next) next();
    else used--;
  }

  return {
    /** Resolves with the function that leaves the slot. */
    async enter(): Promise<() => void> {
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

/** Each call resolves in its own pass of the event loop, in call order. */
export function createPasses(): () => Promise<void> {
  let last = Promise.resolve();
  return () => {
    last = last.then(() => new Promise((resolve) => setImmediate(resolve)));
    return last;
  };
}

/** Lets shutdown wait for all work of a kind. */
export function createIdle() {
  let waiting: (() => void)[] = [];
  return {
    /** Some work ended. */
    changed(): void {
      const told = waiting;
      waiting = [];
      for (const resolve of told) resolve();
    },
    /** Re-checked at every `changed`. */
    async until(holds: () => boolean): Promise<void> {
      while (!holds()) await new Promise<void>((resolve) => waiting.push(resolve));
    },
  };
}

export function once<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

/** One per object, for as long as it lives. */
export function onceForEach<Key extends object, T extends {}>(make: (key: Key) => T): (key: Key) => T {
  const made = new WeakMap<Key, T>();
  return (key) => {
    let one = made.get(key);
    if (one === undefined) {
      one = make(key);
      made.set(key, one);
    }
    return one;
  };
}
