/** Mutexes: work runs one after the other, in the order of the calls. A failure is for its own caller alone. */

export type Mutex = <Result>(work: () => Promise<Result> | Result) => Promise<Result>;

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
