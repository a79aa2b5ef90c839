/**
 * Who goes when: mutexes (work runs one after the other, in the order of the calls; a failure is for its own caller alone),
 * slots, passes of the event loop, and values that are made once.
 */

type Mutex = <Result>(work: () => Promise<Result> | Result) => Promise<Result>;

/** Must not be nested. */
export function createMutex(): Mutex {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const mine = last.then(work);
    last = mine.catch(() => {});
    return mine;
  };
}

/** Runs `work` after all earlier work under the same name. Must not be nested under one name. */
export type Exclusive = <Result>(name: string, work: () => Promise<Result>) => Promise<Result>;

/** A mutex by name: code that changes the same files within this process must share one instance. */
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

// Who goes when, where much is under way at once: at most so many side by side, one in each pass of the event loop, or
// whoever waits until all is over.

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
interface Idle {
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

/** For what is costly to make and often not needed at all: made at the first call. */
export function once<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

/** The same for each object, as long as that lives: it may not change. */
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
