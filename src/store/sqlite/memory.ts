/**
 * Copies in memory of what is read often and changes seldom: chats, aliases, approvals, questions. One rule for all of
 * them: a copy is valid while no other process has written to the database (`PRAGMA data_version`) and none of our own
 * writes has touched it; after a transaction that was rolled back none is.
 *
 * Whether others have written is asked once in each pass of the event loop, and anew in each transaction. Once in a pass
 * is enough: whatever reaches us within a pass was sent before the pass began.
 */
export interface Memory {
  /** The copy of this name, or what `read` finds. */
  get<T>(name: string, read: () => T): T;
  /** What the name stands for is being changed. */
  touch(name: string): void;
  /** Everything is being changed. */
  clear(): void;
  /** For the connection: a transaction begins, and ends in one of two ways. */
  begin(): void;
  commit(): void;
  rollback(): void;
}

const MOST = 10_000;

export function createMemory(dataVersion: () => unknown): Memory {
  const kept = new Map<string, unknown>();
  /** Read within the transaction that runs: kept when it commits. Null while none runs. */
  let uncommitted: Map<string, unknown> | null = null;
  let version: unknown;
  let asked = false;

  function askWhetherOthersWrote(): void {
    if (asked) return;
    const current = dataVersion();
    if (current !== version) kept.clear();
    version = current;
    asked = true;
    // A transaction ends within the pass, and forgets the answer itself.
    if (uncommitted === null) setImmediate(forget);
  }

  function forget(): void {
    asked = false;
  }

  return {
    get<T>(name: string, read: () => T): T {
      askWhetherOthersWrote();
      const copies = uncommitted?.has(name) ? uncommitted : kept;
      if (copies.has(name)) return copies.get(name) as T;
      const found = read();
      if (kept.size >= MOST) kept.clear();
      (uncommitted ?? kept).set(name, found);
      return found;
    },
    touch(name) {
      kept.delete(name);
      uncommitted?.delete(name);
    },
    clear() {
      kept.clear();
      uncommitted?.clear();
    },
    begin() {
      uncommitted = new Map();
      asked = false;
    },
    commit() {
      for (const [name, value] of uncommitted ?? []) kept.set(name, value);
      uncommitted = null;
      asked = false;
    },
    rollback() {
      kept.clear();
      uncommitted = null;
      asked = false;
    },
  };
}
