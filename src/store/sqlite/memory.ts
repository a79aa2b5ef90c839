/**
 * An in-memory cache of what is read often and seldom changes: chats, aliases, approvals, questions. A cached value is
 * valid until another process writes to the database (`PRAGMA data_version`) or one of our own writes touches it; a
 * rollback clears the cache.
 *
 * Whether others have written is checked once per pass of the event loop and again in each transaction. Once per pass
 * suffices: whatever reaches us within a pass was sent before the pass began.
 */
export type Memory = ReturnType<typeof createMemory>;

const MOST = 10_000;

export function createMemory(dataVersion: () => unknown) {
  const kept = new Map<string, unknown>();
  /** Values read within the running transaction: kept when it commits. Null if none is running. */
  let uncommitted: Map<string, unknown> | null = null;
  let version: unknown;
  let asked = false;

  function askWhetherOthersWrote(): void {
    if (asked) return;
    const current = dataVersion();
    if (current !== version) {
      kept.clear();
      // Nothing was read in this transaction before; but what was kept until now may have been changed.
      uncommitted?.clear();
    }
    version = current;
    asked = true;
    // A transaction ends within the pass and resets this itself.
    if (uncommitted === null) setImmediate(forget);
  }

  function forget(): void {
    asked = false;
  }

  return {
    /** The cached value of this name, or what `read` returns. */
    get<T>(name: string, read: () => T): T {
      askWhetherOthersWrote();
      const copies = uncommitted?.has(name) ? uncommitted : kept;
      if (copies.has(name)) return copies.get(name) as T;
      const found = read();
      if (kept.size >= MOST) kept.clear();
      (uncommitted ?? kept).set(name, found);
      return found;
    },
    /** The value of this name, where it is kept, is being changed into another, which need not be read again. */
    change<T>(name: string, to: (value: T) => T): void {
      const copies = uncommitted?.has(name) ? uncommitted : kept;
      // Where others wrote since it was kept, the next look finds that out, as for what was not changed.
      if (copies.has(name)) (uncommitted ?? kept).set(name, to(copies.get(name) as T));
    },
    /** The value of this name is being changed. */
    touch(name: string): void {
      kept.delete(name);
      uncommitted?.delete(name);
    },
    /** Everything is being changed. */
    clear(): void {
      kept.clear();
      uncommitted?.clear();
    },
    /** For the connection: a transaction begins, and commits or rolls back. */
    begin(): void {
      uncommitted = new Map();
      asked = false;
    },
    commit(): void {
      for (const [name, value] of uncommitted ?? []) kept.set(name, value);
      uncommitted = null;
      asked = false;
    },
    rollback(): void {
      kept.clear();
      uncommitted = null;
      asked = false;
    },
  };
}
