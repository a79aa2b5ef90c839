/** A map of at most so many entries: beyond that the oldest is forgotten. */
export type Bounded<Key, Value> = ReturnType<typeof bounded<Key, Value>>;

export function bounded<Key, Value>(most: number) {
  const kept = new Map<Key, Value>();
  return {
    get: (key: Key) => kept.get(key),
    /** Also makes it the newest. */
    set(key: Key, value: Value): void {
      kept.delete(key);
      kept.set(key, value);
      for (const oldest of kept.keys()) {
        if (kept.size <= most) break;
        kept.delete(oldest);
      }
    },
    values: () => kept.values(),
    delete: (key: Key) => void kept.delete(key),
  };
}
