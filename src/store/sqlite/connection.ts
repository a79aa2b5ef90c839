/**
 * A process's only connection to its database file; every verb of the store uses it. A verb runs synchronously to its end;
 * only waiting for another process is asynchronous. Writes that are requested closely after each other share one
 * transaction (`busy.ts`), so rooms that are busy at the same time commit together.
 */
import { rename, rm } from 'node:fs/promises';
import Sqlite from 'better-sqlite3';
import type { Clock } from '../../core/clock.js';
import { createZone, type Zone } from '../../core/dates.js';
import { Fault } from '../../core/errors.js';
import type { Log } from '../../core/log.js';
import { type Busy, storeFault, WriteQueue, withBusyRetry } from './busy.js';
import { durableIn, type Flush } from './durable.js';

/** Statements, each prepared when it first runs. `values` are named ones as one object, or those of `?` in order. */
export interface Statements {
  get<Row>(sql: string, ...values: unknown[]): Row | undefined;
  all<Row>(sql: string, ...values: unknown[]): Row[];
  /** The first column of the first row. */
  value<T>(sql: string, ...values: unknown[]): T | undefined;
  /** The first column of each row. */
  column<T>(sql: string, ...values: unknown[]): T[];
  run(sql: string, ...values: unknown[]): Sqlite.RunResult;
}

/** What only reads: also a file that is open beside a running gateway. */
export interface StoreReader extends Statements {
  /** All of `work` sees one snapshot of the database. */
  read<T>(work: () => T): Promise<T>;
}

export interface Database extends StoreReader {
  readonly file: string;
  readonly raw: Sqlite.Database;
  readonly clock: Clock;
  /** By whose days usage is summed. */
  readonly zone: Zone;
  readonly log: Log | undefined;
  /** Runs `work` outside a transaction, retrying while another process holds the database. */
  withBusyRetry<T>(work: () => T): Promise<T>;
  /**
   * Runs `work` atomically. The result survives a crash of the process, but not always a power cut. `work` may run more
   * than once, so it must depend only on the database.
   */
  write<T>(work: () => T): Promise<T>;
  /** As `write`, for a single statement, which needs no transaction. Returns how many rows it changed. */
  writeOne(sql: string, ...values: unknown[]): Promise<number>;
  /** As `write`, but on the disk when it resolves; blocks the process meanwhile. */
  writeDurably<T>(work: () => T): Promise<T>;
  /** Syncs what was committed to the disk in the background. */
  readonly flush: Flush;
  /** Calls `changed` soon after another process has written. Returns the function that stops watching. */
  watch(changed: () => void): () => void;
  /** Of the journal and of tasks, in this process. */
  readonly journalChanges: Changes;
  readonly taskChanges: Changes;
  /** Outbox entries that the journal may not have yet (`journal.ts`), and what ends the wait for more of them. */
  readonly unentered: { ids: Set<number>; stopWaiting: (() => void) | null };
  /** Copies everything consistently into a new file while others go on writing; `change`: what is removed from the copy. */
  copyTo(file: string, change?: (copy: Sqlite.Database) => void): Promise<void>;
  close(): Promise<void>;
}

/** Tells watchers that something has changed: at once, or when the transaction is over and for many changes once. */
export interface Changes {
  watch(changed: () => void): () => void;
  tell(): void;
}

const WATCH_EVERY_MS = 1_000;
/** The write-ahead log is truncated to this size after a burst. */
const JOURNAL_SIZE_LIMIT = 64 * 1024 * 1024;
/** So much of it is copied into the database at once (16 MB): most pages change many times until then. */
const CHECKPOINT_PAGES = 4_000;

export interface ConnectOptions {
  file: string;
  clock: Clock;
  zone?: Zone | undefined;
  log?: Log | undefined;
  /** How long a verb waits for another process before it fails. */
  busyTimeoutMs: number;
  /** The size at which the disk counts as full. */
  maxPages?: number | undefined;
  /** Called for every statement that runs, to count them. */
  onStatement?: (sql: string) => void;
  /** Called once, when the file was removed, replaced or moved: what it held is saved, and nothing more is done. */
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
        // NORMAL does not sync at a commit: a power cut would lose what was already acknowledged to the platform.
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
    // SQLite's own waiting would block the event loop: `busy.ts` waits instead.
    const verbose = onStatement && ((sql?: unknown) => onStatement(String(sql)));
    return new Sqlite(file, { timeout: 0, verbose });
  } catch (error) {
    throw storeFault(error, file);
  }
}

function setUp(raw: Sqlite.Database, maxPages: number | undefined): void {
  // A database that has tables already adopts this with its next VACUUM; until then `shrink` finds nothing to do.
  raw.exec('PRAGMA auto_vacuum = INCREMENTAL');
  raw.exec('PRAGMA journal_mode = WAL');
  raw.exec('PRAGMA synchronous = NORMAL');
  // Forgotten text must not remain in the file: freed content is overwritten.
  raw.exec('PRAGMA secure_delete = ON');
  raw.exec(`PRAGMA journal_size_limit = ${JOURNAL_SIZE_LIMIT}`);
  raw.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
  if (maxPages !== undefined) raw.exec(`PRAGMA max_page_count = ${maxPages}`);
}

/**
 * Each statement is kept: Node 24 aborts the process when the garbage collector finalises a native object of this binding
 * while no JavaScript is running. (`exec` creates none, `pragma` creates one each time.)
 */
export function statementsOf(raw: Sqlite.Database): Statements {
  const whole = new Map<string, Sqlite.Statement<unknown[]>>();
  const first = new Map<string, Sqlite.Statement<unknown[]>>();

  function prepared(sql: string): Sqlite.Statement<unknown[]> {
    const statement = whole.get(sql) ?? raw.prepare<unknown[]>(sql);
    whole.set(sql, statement);
    return statement;
  }

  function plucked(sql: string): Sqlite.Statement<unknown[]> {
    const statement = first.get(sql) ?? raw.prepare<unknown[]>(sql).pluck();
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
  const dataVersion = raw.prepare('PRAGMA data_version').pluck();
  const watchers = new Set<() => void>();
  let seen: unknown = null;

  /** Changes when another connection has written; null if it cannot be read at the moment. */
  function version(): unknown {
    try {
      return dataVersion.get();
    } catch {
      // Busy, or a passing fault of the disk: verbs that fail on it say so. A timer has nobody to tell.
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

/** The binding's `backup` creates a native object whose collection aborts Node 24 (`statementsOf`). */
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

/** Leaves nothing of what it removes, neither in the file nor beside it. */
function changeCopy(file: string, change: (copy: Sqlite.Database) => void): void {
  const copy = new Sqlite(file);
  try {
    copy.exec('pragma journal_mode = delete; pragma secure_delete = on');
    change(copy);
    copy.exec('vacuum');
  } finally {
    copy.close();
  }
}
