/** Paths below `data_dir`, and how a command enters it. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Config } from './config.js';
import { systemClock } from './core/clock.js';
import { type Exclusive, locks } from './core/concurrency.js';
import { Fault } from './core/errors.js';
import type { Log } from './core/log.js';
import { closeToOthers, type DataLock, shareLock, takeLock } from './operating/lock.js';
import { pathLocks } from './operating/path-locks.js';
import { type DataFolders, finishRestore, isHalfRestored } from './operating/restore-plan.js';
import type { StorePlace } from './store/open.js';

const MIGRATIONS = fileURLToPath(new URL('../migrations/', import.meta.url));

/** The page of the board, where the build puts it. */
export const PAGE_FILES = fileURLToPath(new URL('../dist/board/', import.meta.url));

export const SQLITE_MIGRATIONS = join(MIGRATIONS, 'sqlite');

/** By its end, another gateway must find free what one that stands still has locked in the database. */
const MOST_STILL_MS = 5_000;

export function storeOf({ dataDir, store, node }: Config): StorePlace {
  const file = join(dataDir, 'coterie.db');
  const migrationsFolder = store.url === null ? SQLITE_MIGRATIONS : join(MIGRATIONS, 'postgres');
  const stillMs = Math.min(MOST_STILL_MS, Math.round(node.leaseMs / 2));
  return { ...store, file, migrationsFolder, sqliteMigrations: SQLITE_MIGRATIONS, stillMs };
}

/** Files of one machine, where several share `data_dir`; by default, of this one. */
export function nodeFolderOf({ dataDir, node }: Config, name = node.name): string {
  return join(dataDir, 'nodes', name);
}

/** Locks for writers of the same files, also in other gateways if there may be some. */
export function fileLocksOf({ dataDir, groupsDir, store }: Config): Exclusive {
  if (store.url === null) return locks();
  const roots = { groups: groupsDir, data: dataDir };
  const elapsed = () => performance.now();
  return pathLocks({ folder: join(dataDir, 'locks'), roots, clock: systemClock, elapsed });
}

export function foldersOf({ dataDir }: Config) {
  return {
    /** Files that people sent, one folder per chat. */
    media: join(dataDir, 'media'),
    /** Working folders of personas, one per chat and persona. */
    work: join(dataDir, 'work'),
    /** Recorded turns, for `coterie replay`. */
    records: join(dataDir, 'replay'),
    /** Files that the page sent, until the gateway takes them. */
    board: join(dataDir, 'board'),
    clipboard: join(dataDir, 'clipboard'),
    speech: join(dataDir, 'speech'),
    /** Exported chats waiting to be sent. */
    exports: join(dataDir, 'exports'),
    /** The owner's plan and memory, and the files that tell agents about the owner. */
    workspace: join(dataDir, 'workspace'),
    /** Agent files, and one folder per agent for its internal space and transcripts. */
    agents: join(dataDir, 'agents'),
    /** Results of tasks and turns, one folder each. */
    artifacts: join(dataDir, 'artifacts'),
    /** Instruction bundles, put there by operators. */
    skills: join(dataDir, 'skills'),
  };
}

/** Paths that commands of personas must not see, even if they lie among the system's programs. */
export function hiddenFrom({ dataDir, groupsDir, secretFiles }: Config, configFile: string | null): string[] {
  const files = [configFile, ...secretFiles.map(({ path }) => path)].filter((file) => file !== null);
  return [dataDir, groupsDir, ...files];
}

/** Two commands that start together finish an interrupted restore one after the other; a new restore takes longer. */
const TRIES = 20;
const PAUSE_MS = 100;

/**
 * For every command that opens the data folder: finishes an interrupted restore, closes files that others could read,
 * and keeps restores from starting until the lock is released. Throws Fault while a restore runs.
 */
export async function enterData(folders: DataFolders, log: Log): Promise<DataLock> {
  for (let tries = 0; tries < TRIES; tries++) {
    const shared = await shareLock(restoreLockOf(folders));
    if (shared !== null && !(await isHalfRestored(folders.dataDir))) {
      for (const open of await closeToOthers(folders.dataDir, folders.groupsDir)) log.warn({}, open);
      return shared;
    }
    shared?.release();
    const alone = shared && (await takeLock(restoreLockOf(folders)));
    if (alone) await finishBroken(folders, log).finally(() => alone.release());
    else await systemClock.sleep(PAUSE_MS);
  }
  const { dataDir } = folders;
  throw new Fault('already_running', `A restore is at work on ${dataDir}; try again when it is done.`);
}

/** Keeps gateways, terminals and all other commands out of the data folder. Throws Fault if one is using it. */
export async function enterStopped(folders: DataFolders, log: Log, purpose: string): Promise<DataLock[]> {
  const { dataDir } = folders;
  const data = await aloneInData(folders, log, purpose);
  const running = [
    await takeLock(join(dataDir, 'gateway.lock')),
    await takeLock(join(dataDir, 'terminal.lock')),
  ];
  const locks = [data, ...running].filter((lock) => lock !== null);
  if (!running.includes(null)) return locks;
  for (const lock of locks) lock.release();
  throw runsOn(dataDir, purpose);
}

function runsOn(dataDir: string, purpose: string): Fault {
  return new Fault('already_running', `A coterie runs on ${dataDir}; stop it before you ${purpose}.`);
}

async function aloneInData(folders: DataFolders, log: Log, purpose: string): Promise<DataLock> {
  for (;;) {
    const alone = await takeLock(restoreLockOf(folders));
    if (!alone) {
      const gateway = await takeLock(join(folders.dataDir, 'gateway.lock'));
      if (gateway === null) throw runsOn(folders.dataDir, purpose);
      gateway.release();
      const what = `Another command of coterie is at work on ${folders.dataDir}; try again when it is done.`;
      throw new Fault('already_running', what);
    }
    if (!(await isHalfRestored(folders.dataDir))) return alone;
    // This may replace the folder that holds the lock, so the lock is taken again.
    await finishBroken(folders, log).finally(() => alone.release());
  }
}

async function finishBroken(folders: DataFolders, log: Log): Promise<void> {
  const kept = await finishRestore(folders);
  if (kept.length > 0) log.warn({ kept }, 'interrupted restore finished; the old folders are kept');
}

function restoreLockOf({ dataDir }: DataFolders): string {
  return join(dataDir, 'restore.lock');
}
