/** Mutexes by name: code that changes the same files within this process must share one instance. */

/** Runs `work` after all earlier work under the same name. Must not be nested under one name. */
export type Exclusive = <Result>(name: string, work: () => Promise<Result>) => Promise<Result>;

export function locks(): Exclusive {
  const last = new Map<string, Promise<unknown>>();
  return async (name, work) => {
    // An earlier failure is reported to its own caller.
    const mine = (last.get(name) ?? Promise.resolve()).catch(() => {}).then(work);
    last.set(name, mine);
    try {
      return await mine;
    } finally {
      if (last.get(name) === mine) last.delete(name);
    }
  };
}
