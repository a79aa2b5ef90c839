/**
 * Durability: only data that is on disk, in the file at the configured path, may be acknowledged. `synchronous = FULL`
 * would block the process in every commit; syncing the write-ahead log after the commit is equally durable
 * (docs/decisions/0008). If the file or its log is removed, replaced or moved, SQLite keeps writing to an unlinked
 * file, so nothing is acknowledged any more.
 */
import { realpathSync, statSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import type Sqlite from 'better-sqlite3';
import { Fault } from '../../core/errors.js';
import type { Database } from '../db.js';
import { storeFault } from './busy.js';

/** How often the path is checked while nothing is received. */
const CHECK_EVERY_MS = 2_000;

interface Durable {
  readonly flush: Database['flush'];
  /** Throws if the file is no longer at its path, or if that cannot be checked. */
  stay(): void;
  /** The error that `stay` threw; null until then. */
  fault(): Fault | null;
  /** Closes the database once everything is on disk. */
  close(): Promise<void>;
}

export function durableIn(
  raw: Sqlite.Database,
  options: {
    file: string;
    retry(work: () => void): Promise<void>;
    onLost(fault: Fault): void;
  },
): Durable {
  const { file, retry, onLost } = options;
  const { logFile, displaced } = placeOf(file);
  let log: Promise<FileHandle> | undefined;
  let fault: Fault | null = null;
  // Checked after the commit and before the acknowledgement, so acknowledged data is in the file at the path.
  const { begin, done } = createFlush(
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
    fault = displacedFault(file, found, emptyLog());
    onLost(fault);
    throw fault;
  }

  /**
   * Moves the log into the database, wherever that is now. If another file is in its place, the next start would replay
   * the log into that one. Returns the error if it failed.
   */
  function emptyLog(): unknown {
    try {
      return void raw.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    } catch (error) {
      return error;
    }
  }

  return {
    flush: { begin, done: () => done().catch((error) => Promise.reject(storeFault(error, file))) },
    stay,
    fault: () => fault,
    async close() {
      clearInterval(checking);
      await done().catch(() => {});
      raw.close();
      await (await log)?.close();
    },
  };
}

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

function displacedFault(file: string, { part, how }: Displaced, cause: unknown): Fault {
  const what = part === 'database' ? file : `the write-ahead log of ${file}`;
  const next = 'put it back or restore a backup, and start again';
  return new Fault('store_unavailable', `${what} was ${how} while it was open; ${next}`, cause);
}
