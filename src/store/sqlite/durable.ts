/**
 * Durability: only data that is on disk, in the file at the configured path, may be acknowledged. `synchronous = FULL`
 * would block the process in every commit; syncing the write-ahead log after the commit is equally durable
 * (docs/decisions/0008). If the file or its log is removed, replaced or moved, SQLite keeps writing to an unlinked
 * file, so everything is saved to a new file.
 */
import { closeSync, mkdirSync, openSync, realpathSync, rmSync, statSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import type Sqlite from 'better-sqlite3';
import type { Clock } from '../../core/clock.js';
import { Fault } from '../../core/errors.js';
import { keepHandle } from '../../core/v8.js';

/** How often the path is checked while nothing is received. */
const CHECK_EVERY_MS = 2_000;

interface Durable {
  readonly flush: Flush;
  /** Throws if the file is no longer at its path, or if that cannot be checked. */
  stay(): void;
  /** The error that `stay` threw, once the data is saved; null until then. */
  fault(): Fault | null;
  /** Closes the database once everything is on disk. */
  close(): Promise<void>;
}

export function durableIn(
  raw: Sqlite.Database,
  options: {
    file: string;
    clock: Clock;
    retry(work: () => void): Promise<void>;
    onDisplaced(fault: Fault): void;
  },
): Durable {
  const { file, clock, retry, onDisplaced } = options;
  const { logFile, displaced } = placeOf(file);
  let log: Promise<FileHandle> | undefined;
  let fault: Fault | null = null;
  // Checked after the commit and before the acknowledgement, so acknowledged data is in the file at the path.
  const flush = createFlush(
    async () => {
      // SQLite never removes or replaces its log while the database is open.
      log ??= open(logFile, 'r+');
      await (await log).datasync();
      stay();
    },
    async () => {
      await retry(() => void raw.exec('PRAGMA wal_checkpoint(TRUNCATE)'));
      stay();
    },
  );
  const checking = setInterval(() => {
    try {
      stay();
    } catch {
      // Already reported, or the check failed, which the next acknowledgement reports.
    }
  }, CHECK_EVERY_MS).unref();

  function stay(): void {
    if (fault !== null) throw fault;
    const found = displaced();
    if (found === null) return;
    try {
      const kept = rescue(raw, { file, logFile, displaced: found, now: clock.now() });
      fault = displacedFault(file, found, kept);
    } catch (error) {
      throw displacedFault(file, found, null, error);
    }
    onDisplaced(fault);
    throw fault;
  }

  return {
    flush,
    stay,
    fault: () => fault,
    async close() {
      clearInterval(checking);
      await flush.done().catch(() => {});
      raw.close();
      await (await log)?.close();
    },
  };
}

export type Flush = ReturnType<typeof createFlush>;

/** `rewrite` writes the log's content elsewhere and syncs it. */
export function createFlush(sync: () => Promise<void>, rewrite: () => Promise<void>) {
  let last = Promise.resolve();
  /** A sync that has not started yet covers all commits until it does. */
  let queued = false;
  /** An operating system reports a failed sync only once, and may then treat the lost data as written. */
  let failed = false;

  async function flush(): Promise<void> {
    queued = false;
    try {
      await (failed ? rewrite() : sync());
      failed = false;
    } catch (error) {
      failed = true;
      throw error;
    }
  }

  /** Starts a sync of all commits so far. */
  function begin(): void {
    if (queued) return;
    queued = true;
    last = last.catch(() => {}).then(flush);
    // The caller of `done` gets the error.
    last.catch(() => {});
  }

  return {
    begin,
    /** Resolves when the data is on disk; rejects if the sync failed, and the next call retries. */
    done(): Promise<void> {
      if (failed) begin();
      return last;
    },
  };
}

type Displaced = { part: 'database' | 'log'; how: 'removed' | 'replaced' };

/** The database file, and whether its path still leads to it. An in-memory database is never displaced. */
function placeOf(file: string): { logFile: string; displaced(): Displaced | null } {
  if (file === ':memory:') return { logFile: file, displaced: () => null };
  // If the path is a symbolic link, the log is beside its target.
  const logFile = `${realpathSync(file)}-wal`;
  const database = identityOf(file);
  let log = identityOf(logFile);

  return {
    logFile,
    /** Throws if the file system cannot be read. */
    displaced() {
      const there = identityOf(file);
      if (there !== database) return { part: 'database', how: there === null ? 'removed' : 'replaced' };
      const logThere = identityOf(logFile);
      log ??= logThere;
      if (logThere !== log) return { part: 'log', how: logThere === null ? 'removed' : 'replaced' };
      return null;
    },
  };
}

/** Device and inode number of a file; null if it does not exist. */
function identityOf(path: string): string | null {
  try {
    const found = statSync(path, { bigint: true, throwIfNoEntry: false });
    return found === undefined ? null : `${found.dev}:${found.ino}`;
  } catch (error) {
    // A parent folder was replaced by a file.
    if (error instanceof Error && 'code' in error && error.code === 'ENOTDIR') return null;
    throw error;
  }
}

/**
 * Saves an open database whose file or log was displaced. Synchronous, so that nothing intervenes; called once, because
 * the process ends afterwards. Returns the path of the saved data; throws if it could not be saved.
 */
function rescue(
  raw: Sqlite.Database,
  { file, logFile, displaced, now }: { file: string; logFile: string; displaced: Displaced; now: number },
): string {
  const { part, how } = displaced;
  // If only the log is gone, a checkpoint moves everything into the file.
  if (part === 'log' && how === 'removed' && emptyLog(raw)) return file;
  const copy = `${file}.rescued-${new Date(now).toISOString().replace(/[:.]/g, '-')}`;
  mkdirSync(dirname(copy), { recursive: true, mode: 0o700 });
  // VACUUM INTO accepts an empty file and keeps its mode.
  closeSync(openSync(copy, 'wx', 0o600));
  try {
    raw.exec(`VACUUM INTO '${copy.replaceAll("'", "''")}'`);
  } catch (error) {
    rmSync(copy, { force: true });
    throw error;
  }
  // The old log beside a new file would be replayed into it at the next start.
  if (part === 'database' && how === 'replaced') {
    for (const left of [logFile, logFile.replace(/-wal$/, '-shm')]) rmSync(left, { force: true });
  }
  return copy;
}

function emptyLog(raw: Sqlite.Database): boolean {
  const told = keepHandle(raw.prepare('PRAGMA wal_checkpoint(TRUNCATE)')).get() as { busy: number };
  return told.busy === 0;
}

/** `kept`: path of the saved data; null if saving failed (`cause`). */
function displacedFault(file: string, { part, how }: Displaced, kept: string | null, cause?: unknown): Fault {
  const what = part === 'database' ? file : `the write-ahead log of ${file}`;
  const next =
    kept === null
      ? 'what it holds cannot be saved beside it; retrying, so keep this process running'
      : kept === file
        ? 'everything was brought into the database itself; start again'
        : `everything up to then is in ${kept}; put the right file in place, and start again`;
  return new Fault('store_unavailable', `${what} was ${how} while it was open; ${next}`, cause);
}
