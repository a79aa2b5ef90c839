/**
 * Locks on files of the data folder, and their modes. A lock is an exclusive transaction on a small SQLite database:
 * the operating system frees it with the process, so no stale lock remains. It holds the file, not its name: if the
 * file is removed, another process can lock a new one, so `watchLocks` checks for that.
 */
import { lchownSync, statSync } from 'node:fs';
import { chmod, mkdir, readdir, stat } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import Database from 'better-sqlite3';
import { type Clock, OVER } from '../core/clock.js';
import { describe, Fault } from '../core/errors.js';
import { isMissing } from '../core/file-access.js';
import type { Log } from '../core/log.js';
import { keepHandle } from '../core/v8.js';

/** Our names below data_dir; other files may be there, too. */
const OURS =
  /^(coterie\.db|recall\.db|terminal-history|.*\.lock$|media$|speech$|work$|clipboard$|workspace$|agents$|artifacts$|skills$|replay$|exports$|nodes$|locks$|audit)/;

/** Group and others. */
const OTHERS = 0o077;

/** Restricts the data folder to its owner. Returns one line per path whose mode could not be changed. */
export async function closeToOthers(dataDir: string, groupsDir: string, change = chmod): Promise<string[]> {
  const names = (await readdir(dataDir)).filter((name) => OURS.test(name));
  // A groups folder inside data_dir must stay reachable for the people who edit it.
  const groupsWithin = !relative(resolve(dataDir), resolve(groupsDir)).startsWith('..');
  const paths = [...(groupsWithin ? [] : [dataDir]), ...names.map((name) => join(dataDir, name))];
  const faults = await Promise.all(paths.map((path) => close(path, change)));
  return faults.filter((fault) => fault !== null);
}

/** Gives a file created by root to the owner of its folder, the gateway's user. */
export function giveToOwner(path: string): void {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = statSync(dirname(path));
  // `lchown`: never the target of a link.
  if (uid !== 0) lchownSync(path, uid, gid);
}

async function close(path: string, change: typeof chmod): Promise<string | null> {
  try {
    const { mode } = await stat(path);
    if ((mode & OTHERS) === 0) return null;
    await change(path, mode & ~OTHERS & 0o7777);
    if (((await stat(path)).mode & OTHERS) === 0) return null;
    return `others can read ${path}, and its disk does not allow a change of mode`;
  } catch (error) {
    // SQLite creates and deletes files beside a database.
    return isMissing(error) ? null : `others may be able to read ${path}: ${describe(error)}`;
  }
}

export interface DataLock {
  readonly file: string;
  /** Locks the file that now has the name; null if another process holds it. */
  again(): Promise<DataLock | null>;
  /** Whether the name still refers to the locked file. */
  isInPlace(): boolean;
  release(): void;
}

const LOOK_EVERY_MS = 2_000;

/** null if another process (or another part of this one) holds it. */
export function takeLock(file: string): Promise<DataLock | null> {
  return begin(file, 'BEGIN EXCLUSIVE');
}

/** A shared lock, exclusive with `takeLock`; null if that is held. */
export function shareLock(file: string): Promise<DataLock | null> {
  // A read holds the lock until the transaction ends.
  return begin(file, 'BEGIN; SELECT name FROM sqlite_master');
}

async function begin(file: string, transaction: string): Promise<DataLock | null> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 }).catch((error: unknown) => fail(file, error));
  let database: Database.Database;
  const before = identityOf(file);
  try {
    database = keepHandle(new Database(file, { timeout: 0 }));
  } catch (error) {
    return fail(file, error);
  }
  try {
    database.exec(transaction);
  } catch (error) {
    database.close();
    if (error instanceof Database.SqliteError && error.code.startsWith('SQLITE_BUSY')) return null;
    return fail(file, error);
  }
  const locked = identityOf(file);
  if (before === null && locked !== null) giveToOwner(file);
  const again = () => begin(file, transaction);
  const isInPlace = () => identityOf(file) === locked;
  const lock = { file, again, isInPlace, release: () => database.close() };
  if (locked !== null && (before === null || before === locked)) return lock;
  // Somebody removed the file in between.
  lock.release();
  return again();
}

/**
 * Retakes a lock whose file was removed. Calls `lost`, once, if another process was faster or the folder is gone.
 * Returns the function that stops watching.
 */
export function watchLocks(
  locks: readonly DataLock[],
  clock: Clock,
  log: Log,
  lost: (reason: string) => void,
): () => void {
  const held = [...locks];
  const over = new AbortController();
  void watch().catch((error) => lost(describe(error)));

  async function watch(): Promise<void> {
    for (;;) {
      await clock.sleep(LOOK_EVERY_MS, over.signal);
      if (over.signal.aborted) return;
      for (const [place, lock] of held.entries()) {
        if (lock.isInPlace()) continue;
        const again = identityOf(dirname(lock.file)) === null ? null : await lock.again();
        if (over.signal.aborted) return again?.release();
        if (again === null) {
          return lost(`${lock.file} was removed or replaced, and another process may hold it now`);
        }
        log.warn({ file: lock.file }, 'lock file was removed; taken again');
        // The old lock is kept, too: it blocks processes that opened the old file earlier.
        held[place] = again;
      }
    }
  }

  return () => {
    over.abort(OVER);
    for (const lock of held) if (!locks.includes(lock)) lock.release();
  };
}

/** A file's device and inode; null if it does not exist. */
function identityOf(file: string): string | null {
  const found = statSync(file, { bigint: true, throwIfNoEntry: false });
  return found === undefined ? null : `${found.dev}:${found.ino}`;
}

function fail(file: string, error: unknown): never {
  throw new Fault(
    'configuration',
    `The lock ${file} cannot be taken; data_dir must be a folder that can be written`,
    error,
  );
}
