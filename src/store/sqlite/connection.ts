/**
 * A process's only connection to its database file; every verb of the store uses it. Each verb runs synchronously to
 * its end; only waiting for another process is asynchronous. Writes requested within one pass of the event loop share
 * one transaction, so rooms that are busy at the same time commit together.
 */
import Database from 'better-sqlite3';
import { count, type SQL } from 'drizzle-orm';
import { type BetterSQLite3Database, drizzle } from 'drizzle-orm/better-sqlite3';
import type { SQLiteTable } from 'drizzle-orm/sqlite-core';
import type { Clock } from '../../core/clock.js';
import { Fault } from '../../core/errors.js';
import { isBusy, storeFault } from './faults.js';
import type { Flush } from './flush.js';
import { createFlush, logSync } from './flush.js';
import { createMemory, type Memory } from './memory.js';
import { createWrites } from './writes.js';

export interface Connection {
  readonly file: string;
  readonly raw: Database.Database;
  readonly query: BetterSQLite3Database;
  /** A cache for what is read often and seldom changes. */
  readonly memory: Memory;
  /** The number of rows. To be called within a transaction. */
  count(table: SQLiteTable, where?: SQL): number;
  /** Runs `work` outside a transaction, retrying while another process holds the database. */
  patiently<T>(work: () => T): Promise<T>;
  /** All of `work` sees one snapshot of the database. */
  read<T>(work: () => T): Promise<T>;
  /**
   * Runs `work` atomically. The result survives a crash of the process, but not always a power cut. `work` may run more
   * than once, so it must depend only on the database. `single`: it is one statement, which needs no transaction.
   */
  write<T>(work: () => T, single?: 'single'): Promise<T>;
  /** As `write`, but on the disk when it resolves; blocks the process meanwhile. */
  writeDurably<T>(work: () => T): Promise<T>;
  /** Syncs what was committed to the disk in the background. */
  readonly flush: Flush;
  close(): Promise<void>;
}

const FIRST_PAUSE_MS = 2;
const LONGEST_PAUSE_MS = 100;
/** The write-ahead log is truncated to this size after a burst. */
const JOURNAL_SIZE_LIMIT = 64 * 1024 * 1024;

export async function connect(options: {
  file: string;
  clock: Clock;
  busyTimeoutMs: number;
  maxPages?: number;
  /** Called for every statement that runs, to count them. */
  onStatement?: (sql: string) => void;
}): Promise<Connection> {
  const { file, clock, busyTimeoutMs } = options;

  async function patiently<T>(work: () => T): Promise<T> {
    const giveUpAt = clock.now() + busyTimeoutMs;
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
      if (!raw.open) throw new Fault('store_unavailable', `${file}: the store was closed`);
      try {
        return work();
      } catch (error) {
        if (!isBusy(error) || clock.now() >= giveUpAt) throw storeFault(error, file);
      }
      await clock.sleep(pause);
    }
  }

  const raw = openFile(file, options.onStatement);
  keepStatements(raw);
  try {
    await patiently(() => {
      // A database that has tables already adopts this with its next VACUUM; until then `shrink` finds nothing to do.
      raw.exec('PRAGMA auto_vacuum = INCREMENTAL');
      raw.exec('PRAGMA journal_mode = WAL');
      raw.exec('PRAGMA synchronous = NORMAL');
      // Forgotten text must not remain in the file: freed content is overwritten.
      raw.exec('PRAGMA secure_delete = ON');
      raw.exec(`PRAGMA journal_size_limit = ${JOURNAL_SIZE_LIMIT}`);
      if (options.maxPages !== undefined) raw.exec(`PRAGMA max_page_count = ${options.maxPages}`);
    });
  } catch (error) {
    raw.close();
    throw error;
  }

  const dataVersion = raw.prepare('PRAGMA data_version').pluck();
  const memory = createMemory(() => dataVersion.get());
  const inTransaction = raw.transaction((work: () => unknown) => work());

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

  const writes = createWrites({ file, clock, busyTimeoutMs, commit, isOpen: () => raw.open });
  const query = drizzle(raw);
  const log = logSync(file);
  const flush = createFlush(log.sync, () =>
    patiently(() => void raw.exec('PRAGMA wal_checkpoint(TRUNCATE)')),
  );
  return {
    file,
    raw,
    query,
    memory,
    count: (table, where) => query.select({ rows: count() }).from(table).where(where).get()?.rows ?? 0,
    patiently,
    read: <T>(work: () => T) => patiently(() => inTransaction.deferred(work) as T),
    write: writes.write,
    writeDurably: <T>(work: () => T) =>
      patiently(() => {
        // NORMAL does not sync at a commit: a power cut would lose what was already acknowledged to the platform.
        raw.exec('PRAGMA synchronous = FULL');
        try {
          return commit(work);
        } finally {
          raw.exec('PRAGMA synchronous = NORMAL');
        }
      }),
    flush,
    async close() {
      writes.drain();
      await flush.done().catch(() => {});
      raw.close();
      await log.close();
    },
  };
}

/**
 * Prepares each statement once and keeps it: Node 24 aborts the process when the garbage collector finalises a native
 * object of this binding while no JavaScript is running. (`exec` creates none, `pragma` creates one each time.)
 */
function keepStatements(raw: Database.Database): void {
  const prepare = raw.prepare.bind(raw);
  const kept = new Map<string, Database.Statement>();
  raw.prepare = ((source: string) => {
    let statement = kept.get(source);
    if (!statement) {
      statement = prepare(source);
      kept.set(source, statement);
    }
    return statement;
  }) as typeof raw.prepare;
}

function openFile(file: string, onStatement?: (sql: string) => void): Database.Database {
  try {
    // SQLite's own waiting would block the event loop: `patiently` and `createWrites` wait instead.
    const verbose = onStatement && ((sql?: unknown) => onStatement(String(sql)));
    return new Database(file, { timeout: 0, verbose });
  } catch (error) {
    throw storeFault(error, file);
  }
}
