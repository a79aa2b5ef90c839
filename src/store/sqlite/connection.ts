/**
 * A process's only connection to its database file; every verb of the store uses it. Each verb runs synchronously to
 * its end; only waiting for another process is asynchronous. Writes that are requested closely after each other share
 * one transaction (`busy.ts`), so rooms that are busy at the same time commit together.
 */
import Database from 'better-sqlite3';
import type { Clock } from '../../core/clock.js';
import { Fault } from '../../core/errors.js';
import { createPatience, type Patience } from './busy.js';
import { type CopyTo, copier } from './copy.js';
import { type Durable, durableIn, type Flush } from './durable.js';
import { storeFault } from './faults.js';
import { createMemory, type Memory } from './memory.js';

export interface Connection extends Omit<Patience, 'drain'> {
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
  const { patiently, write, drain } = createPatience({
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
  durable = durableIn(raw, { file, clock, patiently, onDisplaced });
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
    patiently,
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
    copyTo: copier({ raw, patiently }),
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
