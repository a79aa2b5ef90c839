/**
 * What may be acknowledged: what is on the disk, in the file that the path names. Committed data is synced without blocking
 * the event loop: SQLite's own way (`synchronous = FULL`) blocks the process within the commit; syncing the write-ahead
 * log after the commit is just as durable (docs/decisions/0008). When somebody removes, replaces or moves the file or its
 * log, SQLite goes on writing into what nobody will open again: then everything is saved into a file that can be found.
 */
import { closeSync, mkdirSync, openSync, realpathSync, rmSync, statSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import type Sqlite from 'better-sqlite3';
import type { Clock } from '../../core/clock.js';
import { Fault } from '../../core/errors.js';

/** How often the file's place is checked, also when nothing is received. */
const CHECK_EVERY_MS = 2_000;

export interface Durable {
  /** Syncs what was committed to the disk in the background. */
  readonly flush: Flush;
  /** Throws where what is written would be lost, or where that cannot be seen. */
  stay(): void;
  /** What `stay` threw, once everything is saved; null mostly. */
  fault(): Fault | null;
  /** Closes the database, once everything is on the disk. */
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
  // Checked after the commit and before anybody hears of it: what is acknowledged is in the file that the path names.
  const flush = createFlush(
    async () => {
      // SQLite does not remove or replace its log while the database is open.
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
      // Told already; or it cannot be seen now, which the next acknowledgement reports.
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

/** `rewrite` durably writes the log's content elsewhere. */
export function createFlush(sync: () => Promise<void>, rewrite: () => Promise<void>) {
  let last = Promise.resolve();
  /** A sync that has not started yet covers everything committed until it does. */
  let queued = false;
  /** An operating system reports a failed sync only once and may then treat the lost data as written. */
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

  /** Starts syncing what was committed so far. */
  function begin(): void {
    if (queued) return;
    queued = true;
    last = last.catch(() => {}).then(flush);
    // The caller of `done` gets the error.
    last.catch(() => {});
  }

  return {
    begin,
    /** Resolves when it is on the disk; rejects when syncing failed, and the next call tries again. */
    done(): Promise<void> {
      if (failed) begin();
      return last;
    },
  };
}

type Displaced = { part: 'database' | 'log'; how: 'removed' | 'replaced' };

/** Where a database is, and whether its path still leads there. One in memory has no place to lose. */
function placeOf(file: string): { logFile: string; displaced(): Displaced | null } {
  if (file === ':memory:') return { logFile: file, displaced: () => null };
  // Beside the file itself, where the path is a link.
  const logFile = `${realpathSync(file)}-wal`;
  const database = identityOf(file);
  let log = identityOf(logFile);

  return {
    logFile,
    /** Throws where that cannot be seen. */
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

/** The volume and the number of a file there; null where there is none. */
function identityOf(path: string): string | null {
  try {
    const found = statSync(path, { bigint: true, throwIfNoEntry: false });
    return found === undefined ? null : `${found.dev}:${found.ino}`;
  } catch (error) {
    // A file stands where a folder was.
    if (error instanceof Error && 'code' in error && error.code === 'ENOTDIR') return null;
    throw error;
  }
}

/**
 * Saves what is in an open database whose file or log is not where it was. Synchronous, so that nothing comes between, and
 * once: the process ends afterwards. Returns where everything is now; throws where it could not be saved.
 */
function rescue(
  raw: Sqlite.Database,
  { file, logFile, displaced, now }: { file: string; logFile: string; displaced: Displaced; now: number },
): string {
  const { part, how } = displaced;
  // Without its log, the file itself can take all of it.
  if (part === 'log' && how === 'removed' && emptyLog(raw)) return file;
  const copy = `${file}.rescued-${new Date(now).toISOString().replace(/[:.]/g, '-')}`;
  mkdirSync(dirname(copy), { recursive: true, mode: 0o700 });
  // SQLite takes an empty file, and leaves its mode as it is.
  closeSync(openSync(copy, 'wx', 0o600));
  try {
    raw.exec(`VACUUM INTO '${copy.replaceAll("'", "''")}'`);
  } catch (error) {
    rmSync(copy, { force: true });
    throw error;
  }
  // The log of the old file, beside a new one, would be read into that at its next opening.
  if (part === 'database' && how === 'replaced') {
    for (const left of [logFile, logFile.replace(/-wal$/, '-shm')]) rmSync(left, { force: true });
  }
  return copy;
}

function emptyLog(raw: Sqlite.Database): boolean {
  const told = raw.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get() as { busy: number };
  return told.busy === 0;
}

/** What happened, and what is to be done. `kept`: where everything is now; null where it could not be saved, and why. */
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
