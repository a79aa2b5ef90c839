/** Keeps what was used last, up to a size. */
export interface Cache<K, V> {
  get(key: K): V | undefined;
  /** The newest is kept whatever its size. */
  set(key: K, value: V, size: number): void;
  delete(key: K): void;
  clear(): void;
}

export function createCache<K, V>(mostSize: number): Cache<K, V> {
  const kept = new Map<K, { value: V; size: number }>();
  let total = 0;
  function remove(key: K): void {
    total -= kept.get(key)?.size ?? 0;
    kept.delete(key);
  }
  return {
    get(key) {
      const entry = kept.get(key);
      if (entry === undefined) return undefined;
      kept.delete(key);
      kept.set(key, entry);
      return entry.value;
    },
    set(key, value, size) {
      remove(key);
      kept.set(key, { value, size });
      total += size;
      for (const oldest of kept.keys()) {
        if (total <= mostSize || oldest === key) break;
        remove(oldest);
      }
    },
    delete: remove,
    clear() {
      kept.clear();
      total = 0;
    },
  };
}
