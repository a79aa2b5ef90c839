/** A map of at most so many entries: beyond that the oldest is forgotten. */
export interface Bounded<Key, Value> {
  get(key: Key): Value | undefined;
  /** Also makes it the newest. */
  set(key: Key, value: Value): void;
  delete(key: Key): void;
}

export function bounded<Key, Value>(most: number): Bounded<Key, Value> {
  const kept = new Map<Key, Value>();
  return {
    get: (key) => kept.get(key),
    set(key, value) {
      kept.delete(key);
      kept.set(key, value);
      for (const oldest of kept.keys()) {
        if (kept.size <= most) break;
        kept.delete(oldest);
      }
    },
    delete: (key) => void kept.delete(key),
  };
}
