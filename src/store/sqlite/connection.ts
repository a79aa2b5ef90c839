/** Copies of the whole database, consistent, while others go on writing: for backups, and before a migration. */
import { rename, rm } from 'node:fs/promises';
import Database from 'better-sqlite3';
import type { Clock } from '../../core/clock.js';
import { Fault } from '../../core/errors.js';
import { type BusyRetry, createBusyRetry, storeFault } from './busy.js';
import { type Durable, durableIn, type Flush } from './durable.js';

/** Copies everything into a new file; `change`: what is to be taken away of it. */
type CopyTo = (file: string, change?: (copy: Database.Database) => void) => Promise<void>;

/** The binding's `backup` creates a native object whose collection aborts Node 24 (`keepStatements` in `connection.ts`). */
function copier({
  raw,
  withBusyRetry: patiently,
}: Pick<BusyRetry, 'withBusyRetry'> & { raw: Database.Database }): CopyTo {
  return async (copy, change) => {
    const partial = `${copy}.partial`;
    try {
      await rm(partial, { force: true });
      await patiently(() => void raw.exec(`VACUUM INTO '${partial.replaceAll("'", "''")}'`));
      if (change) changeCopy(partial, change);
      await rename(partial, copy);
    } catch (error) {
      await rm(partial, { force: true });
      throw storeFault(error, copy);
    }
  };
}

/** Leaves nothing of what it takes away, neither in the file nor beside it. */
function changeCopy(file: string, change: (copy: Database.Database) => void): void {
  const copy = new Database(file);
  try {
    copy.exec('pragma journal_mode = delete; pragma secure_delete = on');
    change(copy);
    copy.exec('vacuum');
  } finally {
    copy.close();
  }
}

/**
 * An in-memory cache of what is read often and seldom changes: chats, aliases, approvals, questions. A cached value is
 * valid until another process writes to the database (`PRAGMA data_version`) or one of our own writes touches it; a
 * rollback clears the cache.
 *
 * Whether others have written is checked once per pass of the event loop and again in each transaction. Once per pass
 * suffices: whatever reaches us within a pass was sent before the pass began.
 */
type Memory = ReturnType<typeof createMemory>;

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

// A process's only connection to its database file; every verb of the store uses it. Each verb runs synchronously to
// its end; only waiting for another process is asynchronous. Writes that are requested closely after each other share
// one transaction (`busy.ts`), so rooms that are busy at the same time commit together.

export interface Connection extends Omit<BusyRetry, 'drain'> {
  readonly file: string;
  readonly raw: Database.Database;
  /** A cache for what is read often and seldom changes. */
  readonly memory: Memory;
  /** All of `work` sees one snapshot of the database. */
  read<T>(work: () => T): Promise<T>;
  /** As `write`, but on the disk when it resolves; blocks the process meanwhile. */
  writeDurably<T>(work: () => T): Promise<T>;
  /** Syncs what was committed to the disk in the background. */
  readonly flush: Flush;
  /** Calls `changed` soon after another process has written. Returns the function that stops watching. */
  watch(changed: () => void): () => void;
  /** Copies everything consistently into a new file, while other processes go on writing. */
  readonly copyTo: CopyTo;
  close(): Promise<void>;
}

const WATCH_EVERY_MS = 1_000;
/** The write-ahead log is truncated to this size after a burst. */
const JOURNAL_SIZE_LIMIT = 64 * 1024 * 1024;
/** So much of it is copied into the database at once (16 MB): most pages change many times until then, and are copied once. */
const CHECKPOINT_PAGES = 4_000;

export async function connect(options: {
  file: string;
  clock: Clock;
  busyTimeoutMs: number;
  maxPages?: number;
  /** Called for every statement that runs, to count them. */
  onStatement?: (sql: string) => void;
  /** Called once, when the file was removed, replaced or moved: what it held is saved, and nothing is done any more. */
  onDisplaced?: (fault: Fault) => void;
}): Promise<Connection> {
  const { file, clock, busyTimeoutMs, onDisplaced = () => {} } = options;
  const raw = openFile(file, options.onStatement);
  keepStatements(raw);
  const {
    withBusyRetry: patiently,
    write,
    drain,
  } = createBusyRetry({
    file,
    clock,
    busyTimeoutMs,
    commit,
    ended: () =>
      durable?.fault() ?? (raw.open ? null : new Fault('store_unavailable', `${file}: the store was closed`)),
  });
  let durable: Durable | null = null;
  try {
    await patiently(() => {
      // A database that has tables already adopts this with its next VACUUM; until then `shrink` finds nothing to do.
      raw.exec('PRAGMA auto_vacuum = INCREMENTAL');
      raw.exec('PRAGMA journal_mode = WAL');
      raw.exec('PRAGMA synchronous = NORMAL');
      // Forgotten text must not remain in the file: freed content is overwritten.
      raw.exec('PRAGMA secure_delete = ON');
      raw.exec(`PRAGMA journal_size_limit = ${JOURNAL_SIZE_LIMIT}`);
      raw.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
      if (options.maxPages !== undefined) raw.exec(`PRAGMA max_page_count = ${options.maxPages}`);
    });
  } catch (error) {
    raw.close();
    throw error;
  }

  const dataVersion = raw.prepare('PRAGMA data_version').pluck();
  const memory = createMemory(() => dataVersion.get());
  const inTransaction = raw.transaction((work: () => unknown) => work());
  durable = durableIn(raw, { file, clock, withBusyRetry: patiently, onDisplaced });
  const { flush, stay } = durable;
  const watchers = new Set<() => void>();
  let seen: unknown = null;
  const watching = setInterval(() => {
    const current = watchers.size === 0 ? null : version();
    if (current === null || current === seen) return;
    seen = current;
    for (const changed of watchers) changed();
  }, WATCH_EVERY_MS).unref();

  /** Cached values change only when the transaction commits. */
  function commit<T>(work: () => T): T {
    memory.begin();
    try {
      const result = inTransaction.immediate(work) as T;
      memory.commit();
      return result;
    } catch (error) {
      memory.rollback();
      throw error;
    }
  }

  /** Changes when another connection has written; null if it cannot be read at the moment. */
  function version(): unknown {
    try {
      return dataVersion.get();
    } catch {
      // Busy, or a passing fault of the disk: verbs that fail on it say so. A timer has nobody to tell.
      return null;
    }
  }

  return {
    file,
    raw,
    memory,
    withBusyRetry: patiently,
    write,
    read: <T>(work: () => T) => patiently(() => inTransaction.deferred(work) as T),
    writeDurably: <T>(work: () => T) =>
      patiently(() => {
        // NORMAL does not sync at a commit: a power cut would lose what was already acknowledged to the platform.
        raw.exec('PRAGMA synchronous = FULL');
        try {
          const result = commit(work);
          stay();
          return result;
        } finally {
          raw.exec('PRAGMA synchronous = NORMAL');
        }
      }),
    flush,
    watch(changed) {
      if (watchers.size === 0) seen = version();
      const watcher = () => changed();
      watchers.add(watcher);
      return () => void watchers.delete(watcher);
    },
    copyTo: copier({ raw, withBusyRetry: patiently }),
    async close() {
      clearInterval(watching);
      drain();
      await durable.close();
    },
  };
}

/**
 * Prepares each statement once, when it runs first, and keeps it. A start prepares but the few that it runs itself; and
 * Node 24 aborts the process when the garbage collector finalises a native object of this binding while no JavaScript is
 * running. (`exec` creates none, `pragma` creates one each time.)
 */
function keepStatements(raw: Database.Database): void {
  const prepare = raw.prepare.bind(raw);
  const kept = new Map<string, Statement>();
  raw.prepare = ((source: string) => {
    const statement = kept.get(source) ?? lazily(() => prepare(source));
    kept.set(source, statement);
    return statement;
  }) as unknown as typeof raw.prepare;
}

/** As much of a statement as the store uses. */
type Statement = Pick<Database.Statement<unknown[]>, 'run' | 'get' | 'all'> & { pluck(): Statement };

/** What is wrong with its source is thrown when it first runs. */
function lazily(prepare: () => Database.Statement<unknown[]>): Statement {
  let prepared: Database.Statement<unknown[]> | null = null;
  let isPlucked = false;
  const statement = () => {
    prepared ??= isPlucked ? prepare().pluck() : prepare();
    return prepared;
  };
  const lazy: Statement = {
    run: (...given) => statement().run(...given),
    get: (...given) => statement().get(...given),
    all: (...given) => statement().all(...given),
    pluck() {
      isPlucked = true;
      prepared?.pluck();
      return lazy;
    },
  };
  return lazy;
}

function openFile(file: string, onStatement?: (sql: string) => void): Database.Database {
  try {
    // SQLite's own waiting would block the event loop: `busy.ts` waits instead.
    const verbose = onStatement && ((sql?: unknown) => onStatement(String(sql)));
    return new Database(file, { timeout: 0, verbose });
  } catch (error) {
    throw storeFault(error, file);
  }
}
