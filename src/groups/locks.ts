/** Work under a name, one after the other: whoever changes the same files of this process shares one of these. */

/** Runs the work once all that was given before under the same name is done. Not to be nested under one name. */
export type Exclusive = <Result>(name: string, work: () => Promise<Result>) => Promise<Result>;

export function locks(): Exclusive {
  const last = new Map<string, Promise<unknown>>();
  return async (name, work) => {
    // A failure of the work before is told to whoever asked for that.
    const mine = (last.get(name) ?? Promise.resolve()).catch(() => {}).then(work);
    last.set(name, mine);
    try {
      return await mine;
    } finally {
      if (last.get(name) === mine) last.delete(name);
    }
  };
}
