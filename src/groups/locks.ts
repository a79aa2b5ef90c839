/** One after the other, by name: whoever changes the same files of this process shares one of these. */

/** Runs the work once all that was given before under the same name is done. Not to be nested under one name. */
export type Alone = <Result>(name: string, work: () => Promise<Result>) => Promise<Result>;

export function locks(): Alone {
  const last = new Map<string, Promise<unknown>>();
  return async (name, work) => {
    // The failure of the one before is its caller's to hear.
    const mine = (last.get(name) ?? Promise.resolve()).catch(() => {}).then(work);
    last.set(name, mine);
    try {
      return await mine;
    } finally {
      if (last.get(name) === mine) last.delete(name);
    }
  };
}
