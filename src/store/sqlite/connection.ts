/**
 * A process's only connection to its database file; all ports use it. Verbs run synchronously; only waiting for another
 * process is asynchronous. Writes requested close together share one transaction (`busy.ts`).
 */
import { rename, rm } from 'node:fs/promises';
import Sqlite from 'better-sqlite3';
import type { Clock } from '../../core/clock.js';
import { createZone, type Zone } from '../../core/dates.js';
import { Fault } from '../../core/errors.js';
import type { Log } from '../../core/log.js';
import { keepHandle } from '../../core/v8.js';
import { type Busy, storeFault, WriteQueue, withBusyRetry } from './busy.js';
import { durableIn, type Flush } from './durable.js';

/** Statements, prepared on first use. `values`: one object for named parameters, or a list for `?`. */
export interface Statements {
  get<Row>(sql: string, ...values: unknown[]): Row | undefined;
  all<Row>(sql: string, ...values: unknown[]): Row[];
  /** The first column of the first row. */
  value<T>(sql: string, ...values: unknown[]): T | undefined;
  /** The first column of each row. */
  column<T>(sql: string, ...values: unknown[]): T[];
  run(sql: string, ...values: unknown[]): Sqlite.RunResult;
}

/** Read access; also for a file opened beside a running gateway. */
export interface StoreReader extends Statements {
  /** Everything in `work` sees the same snapshot. */
  read<T>(work: () => T): Promise<T>;
}

export interface Database extends StoreReader {
  readonly file: string;
  readonly raw: Sqlite.Database;
  readonly clock: Clock;
  /** The time zone whose days usage is summed by. */
  readonly zone: Zone;
  readonly log: Log | undefined;
  /** Runs `work` outside a transaction, retrying while another process holds the lock. */
  withBusyRetry<T>(work: () => T): Promise<T>;
  /** Atomic; survives a process crash, not always a power cut. `work` may rerun: it must use only the database. */
  write<T>(work: () => T): Promise<T>;
  /** Like `write`, for a single statement, which needs no transaction. Returns the number of rows changed. */
  writeOne(sql: string, ...values: unknown[]): Promise<number>;
  /** Like `write`, but synced to disk when it resolves; blocks the process meanwhile. */
  writeDurably<T>(work: () => T): Promise<T>;
  /** Syncs commits to disk in the background. */
  readonly flush: Flush;
  /** Calls `changed` soon after another process has written. Returns a function that stops watching. */
  watch(changed: () => void): () => void;
  /** Changes made by this process. */
  readonly journalChanges: Changes;
  readonly taskChanges: Changes;
  /** Outbox entries that the journal may still lack (`journal.ts`), and the function that cancels their timer. */
  readonly unentered: { ids: Set<number>; stopWaiting: (() => void) | null };
  /** Copies a consistent snapshot into a new file without blocking writers; `change` edits the copy. */
  copyTo(file: string, change?: (copy: Sqlite.Database) => void): Promise<void>;
  close(): Promise<void>;
}

/** Notifies watchers: at once outside a transaction, else once after it. */
export interface Changes {
  watch(changed: () => void): () => void;
  tell(): void;
}

const WATCH_EVERY_MS = 1_000;
/** The write-ahead log is truncated to this size after a burst. */
const JOURNAL_SIZE_LIMIT = 64 * 1024 * 1024;
/** Pages in the log before a checkpoint (16 MB): most pages change many times until then. */
const CHECKPOINT_PAGES = 4_000;

interface ConnectOptions {
  file: string;
  clock: Clock;
  zone?: Zone | undefined;
  log?: Log | undefined;
  busyTimeoutMs: number;
  /** Simulates a full disk at this size. */
  maxPages?: number | undefined;
  /** Called for every statement that runs, to count them. */
  onStatement?: (sql: string) => void;
  /** Called once, when the file was removed, replaced or moved; its data is saved and no verb works any more. */
  onDisplaced?: ((fault: Fault) => void) | undefined;
}

export async function connect(options: ConnectOptions): Promise<Database> {
  const { file, clock, zone = createZone('UTC'), log, busyTimeoutMs, onDisplaced = () => {} } = options;
  const raw = openFile(file, options.onStatement);
  const closed = () => (raw.open ? null : new Fault('store_unavailable', `${file}: the store was closed`));
  const busy: Busy = { file, clock, busyTimeoutMs, ended: closed };
  const retry = <T>(work: () => T) => withBusyRetry(busy, work);
  try {
    await retry(() => setUp(raw, options.maxPages));
  } catch (error) {
    raw.close();
    throw error;
  }
  const durable = durableIn(raw, { file, clock, retry, onDisplaced });
  busy.ended = () => durable.fault() ?? closed();
  const inTransaction = raw.transaction((work: () => unknown) => work());
  const commit = <T>(work: () => T) => inTransaction.immediate(work) as T;
  const queue = new WriteQueue(busy, commit);
  const statements = statementsOf(raw);
  const others = watchOthers(raw);

  return {
    ...statements,
    file,
    raw,
    clock,
    zone,
    log,
    withBusyRetry: retry,
    read: (work) => retry(() => inTransaction.deferred(work) as ReturnType<typeof work>),
    write: (work) => queue.add(work, false),
    writeOne: (sql, ...values) => queue.add(() => statements.run(sql, ...values).changes, true),
    writeDurably: (work) =>
      retry(() => {
        // NORMAL does not sync on commit: a power cut could lose messages already acknowledged to the platform.
        raw.exec('PRAGMA synchronous = FULL');
        try {
          const result = commit(work);
          durable.stay();
          return result;
        } finally {
          raw.exec('PRAGMA synchronous = NORMAL');
        }
      }),
    flush: durable.flush,
    watch: others.watch,
    journalChanges: changesIn(raw, 'at once'),
    taskChanges: changesIn(raw, 'once'),
    unentered: { ids: new Set(), stopWaiting: null },
    copyTo: (copy, change) => copyInto(copy, change, raw, retry),
    async close() {
      others.stop();
      queue.drain();
      await durable.close();
    },
  };
}

function openFile(file: string, onStatement?: (sql: string) => void): Sqlite.Database {
  try {
    // SQLite's own busy wait would block the event loop; `busy.ts` waits instead.
    const verbose = onStatement && ((sql?: unknown) => onStatement(String(sql)));
    return keepHandle(new Sqlite(file, { timeout: 0, verbose }));
  } catch (error) {
    throw storeFault(error, file);
  }
}

function setUp(raw: Sqlite.Database, maxPages: number | undefined): void {
  // A database that already has tables adopts this at its next VACUUM; until then `shrink` does nothing.
  raw.exec('PRAGMA auto_vacuum = INCREMENTAL');
  raw.exec('PRAGMA journal_mode = WAL');
  raw.exec('PRAGMA synchronous = NORMAL');
  // Forgotten text must not remain in the file, so freed content is overwritten.
  raw.exec('PRAGMA secure_delete = ON');
  raw.exec(`PRAGMA journal_size_limit = ${JOURNAL_SIZE_LIMIT}`);
  raw.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
  if (maxPages !== undefined) raw.exec(`PRAGMA max_page_count = ${maxPages}`);
}

/** Cached, and kept (`keepHandle`). `exec` creates no native object; the binding's `pragma` creates one per call. */
export function statementsOf(raw: Sqlite.Database): Statements {
  const whole = new Map<string, Sqlite.Statement<unknown[]>>();
  const first = new Map<string, Sqlite.Statement<unknown[]>>();

  function prepared(sql: string): Sqlite.Statement<unknown[]> {
    const statement = whole.get(sql) ?? keepHandle(raw.prepare<unknown[]>(sql));
    whole.set(sql, statement);
    return statement;
  }

  function plucked(sql: string): Sqlite.Statement<unknown[]> {
    const statement = first.get(sql) ?? keepHandle(raw.prepare<unknown[]>(sql).pluck());
    first.set(sql, statement);
    return statement;
  }

  return {
    get: <Row>(sql: string, ...values: unknown[]) => prepared(sql).get(...values) as Row | undefined,
    all: <Row>(sql: string, ...values: unknown[]) => prepared(sql).all(...values) as Row[],
    value: <T>(sql: string, ...values: unknown[]) => plucked(sql).get(...values) as T | undefined,
    column: <T>(sql: string, ...values: unknown[]) => plucked(sql).all(...values) as T[],
    run: (sql, ...values) => prepared(sql).run(...values),
  };
}

function watchOthers(raw: Sqlite.Database) {
  const dataVersion = keepHandle(raw.prepare('PRAGMA data_version').pluck());
  const watchers = new Set<() => void>();
  let seen: unknown = null;

  /** A number that changes when another connection has written; null if it cannot be read now. */
  function version(): unknown {
    try {
      return dataVersion.get();
    } catch {
      // Busy, or a passing disk error: the next verb reports it. A timer has no caller to report to.
      return null;
    }
  }

  const watching = setInterval(() => {
    const current = watchers.size === 0 ? null : version();
    if (current === null || current === seen) return;
    seen = current;
    for (const changed of watchers) changed();
  }, WATCH_EVERY_MS).unref();

  return {
    watch(changed: () => void): () => void {
      if (watchers.size === 0) seen = version();
      const watcher = () => changed();
      watchers.add(watcher);
      return () => void watchers.delete(watcher);
    },
    stop: () => clearInterval(watching),
  };
}

function changesIn(raw: Sqlite.Database, how: 'at once' | 'once'): Changes {
  const watchers = new Set<() => void>();
  let isDue = false;

  function tellAll(): void {
    isDue = false;
    if (raw.open) for (const watcher of watchers) watcher();
  }

  return {
    watch(changed) {
      watchers.add(changed);
      return () => void watchers.delete(changed);
    },
    tell() {
      if (how === 'at once') return tellAll();
      if (!isDue) setImmediate(tellAll);
      isDue = true;
    },
  };
}

/** Not the binding's `backup`: it creates a native object whose collection aborts Node 24 (see `keepHandle`). */
async function copyInto(
  copy: string,
  change: ((copy: Sqlite.Database) => void) | undefined,
  raw: Sqlite.Database,
  retry: (work: () => void) => Promise<void>,
): Promise<void> {
  const partial = `${copy}.partial`;
  try {
    await rm(partial, { force: true });
    await retry(() => void raw.exec(`VACUUM INTO '${partial.replaceAll("'", "''")}'`));
    if (change) changeCopy(partial, change);
    await rename(partial, copy);
  } catch (error) {
    await rm(partial, { force: true });
    throw storeFault(error, copy);
  }
}

/** Deleted data must not remain in the file or in files beside it. */
function changeCopy(file: string, change: (copy: Sqlite.Database) => void): void {
  const copy = keepHandle(new Sqlite(file));
  try {
    copy.exec('pragma journal_mode = delete; pragma secure_delete = on');
    change(copy);
    copy.exec('vacuum');
  } finally {
    copy.close();
  }
}
