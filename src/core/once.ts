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
