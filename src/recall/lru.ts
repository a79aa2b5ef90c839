/** A cache with a size limit that drops the least recently used entries. */
export function createLru<K, V>(mostSize: number) {
  const kept = new Map<K, { value: V; size: number }>();
  let total = 0;

  function remove(key: K): void {
    total -= kept.get(key)?.size ?? 0;
    kept.delete(key);
  }

  return {
    delete: remove,
    get(key: K): V | undefined {
      const entry = kept.get(key);
      if (entry === undefined) return undefined;
      kept.delete(key);
      kept.set(key, entry);
      return entry.value;
    },
    /** The newest entry is kept whatever its size. */
    set(key: K, value: V, size: number): void {
      remove(key);
      kept.set(key, { value, size });
      total += size;
      for (const oldest of kept.keys()) {
        if (total <= mostSize || oldest === key) break;
        remove(oldest);
      }
    },
    clear(): void {
      kept.clear();
      total = 0;
    },
  };
}
