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
import { type Ask, createWatchers, type Database, type Verb, type Watched } from '../db.js';
import type { StoreReports } from '../outage.js';
import { SQLITE, spelled, watchedTable } from '../sql.js';
import { type Busy, storeFault, WriteQueue, withBusyRetry } from './busy.js';
import { durableIn } from './durable.js';

/** Answers a verb's statements, prepared on first use; also for migrations and files of others. */
export interface Statements {
  one<Row>(sql: string, ...values: unknown[]): Row | undefined;
  all<Row>(sql: string, ...values: unknown[]): Row[];
  /** The number of rows changed. */
  run(sql: string, ...values: unknown[]): number;
  /** For a verb's statement. */
  answer(ask: Ask): unknown;
}

export interface SqliteDatabase extends Database {
  readonly file: string;
  readonly raw: Sqlite.Database;
  readonly statements: Statements;
  /** Runs `work` outside a transaction, retrying while another process holds the lock. */
  retry<T>(work: () => T): Promise<T>;
  /** Like `write`, but synced to disk when it resolves; blocks the process meanwhile. */
  writeDurably<T>(work: () => T): Promise<T>;
}

const WATCH_EVERY_MS = 1_000;
/** The write-ahead log is truncated to this size after a burst. */
const JOURNAL_SIZE_LIMIT = 64 * 1024 * 1024;
/** Pages in the log before a checkpoint (16 MB): most pages change many times until then. */
const CHECKPOINT_PAGES = 4_000;

export interface ConnectOptions {
  file: string;
  clock: Clock;
  zone?: Zone | undefined;
  log?: Log | undefined;
  told?: StoreReports | undefined;
  /** How long a verb waits for another process before it fails. Default: 30 s. */
  busyTimeoutMs?: number | undefined;
  /** Simulates a full disk at this size. */
  maxPages?: number | undefined;
  /** Called for every statement that runs, to count them. */
  onStatement?: (sql: string) => void;
  /** Called once, when the file was removed, replaced or moved: no verb works any more. */
  onLost?: ((fault: Fault) => void) | undefined;
}

export async function connect(options: ConnectOptions): Promise<SqliteDatabase> {
  const {
    file,
    clock,
    zone = createZone('UTC'),
    log,
    told,
    busyTimeoutMs = 30_000,
    onLost = () => {},
  } = options;
  const raw = openFile(file, options.onStatement);
  const closed = () => (raw.open ? null : new Fault('store_unavailable', `${file}: the store was closed`));
  const retried = (reason: string) => told?.metrics.count('store_retries_total', { reason });
  const busy: Busy = { file, clock, busyTimeoutMs, retried, ended: closed };
  const retry = <T>(work: () => T) => withBusyRetry(busy, work);
  try {
    await retry(() => setUp(raw, options.maxPages));
  } catch (error) {
    raw.close();
    throw error;
  }
  const durable = durableIn(raw, { file, retry, onLost });
  busy.ended = () => durable.fault() ?? closed();
  const inTransaction = raw.transaction((work: () => unknown) => work());
  const commit = <T>(work: () => T) => inTransaction.immediate(work) as T;
  const queue = new WriteQueue(busy, commit);
  const own = createWatchers(() => raw.open);
  const stopWatching = watchOthers(raw, () => own.changed('others'));
  const statements = statementsOf(raw, own.changed);
  const read = <T>(verb: () => Verb<T>) =>
    retry(() => inTransaction.deferred(() => runVerb(statements, verb())) as T);

  return {
    file,
    raw,
    statements,
    clock,
    zone,
    log,
    told,
    retry,
    look: (verb) => retry(() => runVerb(statements, verb())),
    read,
    settled: read,
    write: (_, verb) => queue.add(() => runVerb(statements, verb())),
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
    watch: own.watch,
    notices: { onNotice: () => () => {}, notify: async () => {} },
    shrink: (pages) => shrink(raw, statements, retry, pages),
    scrub: (whole) => retry(() => scrub(raw, statements, whole)),
    size: () => retry(() => size(statements)),
    copyTo: (copy, without) => copyInto(copy, without, raw, retry),
    async close() {
      stopWatching();
      queue.drain();
      await durable.close();
    },
  };
}

/** Runs a verb to its end: every statement is answered at once. */
export function runVerb<T>(statements: Statements, verb: Verb<T>): T {
  for (let answer: unknown; ; ) {
    const { done, value } = verb.next(answer);
    if (done) return value;
    answer = 'kind' in value ? statements.answer(value) : value.map(statements.answer);
  }
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

/**
 * Cached, and kept (`keepHandle`). `exec` creates no native object; the binding's `pragma` creates one per call.
 * `changed`: called when a statement may have changed a watched table.
 */
export function statementsOf(raw: Sqlite.Database, changed: (table: Watched) => void = () => {}): Statements {
  const kept = new Map<string, ReturnType<typeof prepare>>();

  function answer({ kind, sql, values }: Ask): unknown {
    let known = kept.get(sql);
    if (known === undefined) {
      known = prepare(raw, sql);
      kept.set(sql, known);
    }
    const { statement, table, names, blank } = known;
    // A watcher that looks by a statement of its own would otherwise wake itself for ever.
    const tell = (rows: number) => {
      if (table !== null && rows > 0) changed(table);
    };
    if (kind === 'all') {
      const found = statement.all(...values);
      tell(found.length);
      return found.map((each) => rowOf(each, names, blank));
    }
    if (kind === 'one') {
      const found = statement.get(...values);
      tell(found === undefined ? 0 : 1);
      return found && rowOf(found, names, blank);
    }
    const { changes } = statement.run(...values);
    tell(changes);
    return changes;
  }

  return {
    one: <Row>(sql: string, ...values: unknown[]) => answer({ kind: 'one', sql, values }) as Row | undefined,
    all: <Row>(sql: string, ...values: unknown[]) => answer({ kind: 'all', sql, values }) as Row[],
    run: (sql, ...values) => answer({ kind: 'run', sql, values }) as number,
    answer,
  };
}

function prepare(raw: Sqlite.Database, sql: string) {
  const statement = keepHandle(raw.prepare<unknown[], unknown[]>(spelled(sql, SQLITE)));
  const columns = statement.reader ? statement.raw().columns() : [];
  const names = columns.map(({ name }) => name);
  const blank: Record<string, unknown> = Object.fromEntries(names.map((name) => [name, null]));
  return { statement, table: watchedTable(sql), names, blank };
}

/** Takes half the time that the binding needs for objects of its own. */
function rowOf(values: unknown[], names: string[], blank: Record<string, unknown>) {
  const row = { ...blank };
  for (let n = 0; n < names.length; n++) row[names[n] ?? ''] = values[n];
  return row;
}

/** Calls `changed` soon after another connection has written. Returns the function that stops watching. */
function watchOthers(raw: Sqlite.Database, changed: () => void): () => void {
  const dataVersion = keepHandle(raw.prepare('PRAGMA data_version').pluck());

  /** A number that changes when another connection has written; null if it cannot be read now. */
  function version(): unknown {
    try {
      return dataVersion.get();
    } catch {
      // Busy, or a passing disk error: the next verb reports it. A timer has no caller to report to.
      return null;
    }
  }

  let seen = version();
  const watching = setInterval(() => {
    const current = version();
    if (current === null || current === seen) return;
    seen = current;
    changed();
  }, WATCH_EVERY_MS).unref();
  return () => clearInterval(watching);
}

// ── The file ───────────────────────────────────────────────────────────────────────────────────────────────

/** The value of `auto_vacuum` with which free pages can be released on demand. */
const INCREMENTAL = 2;

function pragma(statements: Statements, name: string): number {
  return Object.values(statements.one<Record<string, number>>(`PRAGMA ${name}`) ?? {})[0] ?? 0;
}

async function shrink(
  raw: Sqlite.Database,
  statements: Statements,
  retry: <T>(work: () => T) => Promise<T>,
  pages: number,
): Promise<boolean> {
  if ((await retry(() => pragma(statements, 'auto_vacuum'))) === INCREMENTAL) {
    await retry(() => void raw.exec(`PRAGMA incremental_vacuum(${Math.trunc(pages)})`));
    if ((await retry(() => pragma(statements, 'freelist_count'))) > 0) return true;
  }
  // The write-ahead log still contains old versions of pages.
  await retry(() => void raw.exec('PRAGMA wal_checkpoint(TRUNCATE)'));
  return false;
}

/**
 * `secure_delete` overwrites deleted content, but not the copies that SQLite made when it moved rows of a full page to
 * other pages: these remain until VACUUM, which takes about 1 s per 200 MB and blocks the process. Until a checkpoint,
 * the write-ahead log and the file still contain old versions of pages.
 */
function scrub(raw: Sqlite.Database, statements: Statements, whole: boolean): void {
  if (whole) raw.exec('VACUUM');
  if (pragma(statements, 'wal_checkpoint(TRUNCATE)') !== 0) {
    throw new Sqlite.SqliteError('another process still reads the write-ahead log', 'SQLITE_BUSY');
  }
}

function size(statements: Statements): { bytes: number; free: number } {
  const page = pragma(statements, 'page_size');
  return {
    bytes: pragma(statements, 'page_count') * page,
    free: pragma(statements, 'freelist_count') * page,
  };
}

/** Not the binding's `backup`: it creates a native object whose collection aborts Node 24 (see `keepHandle`). */
async function copyInto(
  copy: string,
  without: readonly string[],
  raw: Sqlite.Database,
  retry: (work: () => void) => Promise<void>,
): Promise<void> {
  const partial = `${copy}.partial`;
  try {
    await rm(partial, { force: true });
    await retry(() => void raw.exec(`VACUUM INTO '${partial.replaceAll("'", "''")}'`));
    if (without.length > 0) empty(partial, without);
    await rename(partial, copy);
  } catch (error) {
    await rm(partial, { force: true });
    throw storeFault(error, copy);
  }
}

/** Deleted data must not remain in the file or in files beside it. */
function empty(file: string, tables: readonly string[]): void {
  const copy = keepHandle(new Sqlite(file));
  try {
    copy.exec('pragma journal_mode = delete; pragma secure_delete = on');
    for (const table of tables) copy.exec(`delete from ${table}`);
    copy.exec('vacuum');
  } finally {
    copy.close();
  }
}
