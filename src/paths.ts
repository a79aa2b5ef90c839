/** Where things lie below `data_dir`, and how a command enters it. */
import { join } from 'node:path';
import type { Config } from './config.js';
import { type Clock, systemClock } from './core/clock.js';
import { Fault } from './core/errors.js';
import type { Log } from './core/log.js';
import { closeToOthers, type DataLock, shareLock, takeLock } from './operating/lock.js';
import { type DataFolders, finishRestore, isHalfRestored } from './operating/restore-plan.js';

/** Files that people sent: a folder for each chat. */
export function mediaFolderOf({ dataDir }: Config): string {
  return join(dataDir, 'media');
}

/** Working folders of personas: a folder for each chat, in it one for each persona. */
export function workFolderOf({ dataDir }: Config): string {
  return join(dataDir, 'work');
}

/** What turns saw, for `coterie replay`. */
export function recordsFolderOf({ dataDir }: Config): string {
  return join(dataDir, 'replay');
}

export function clipboardFolderOf({ dataDir }: Config): string {
  return join(dataDir, 'clipboard');
}

/** Chats that were exported and wait to be sent. */
export function exportsFolderOf({ dataDir }: Config): string {
  return join(dataDir, 'exports');
}

/** The owner's: the plan, memory, and the files that tell an agent whom it works for. */
export function workspaceFolderOf({ dataDir }: Config): string {
  return join(dataDir, 'workspace');
}

/** Files of agents, and a folder for each with its internal space and its transcripts. */
export function agentsFolderOf({ dataDir }: Config): string {
  return join(dataDir, 'agents');
}

/** What came out of tasks and turns: a folder for each. */
export function artifactsFolderOf({ dataDir }: Config): string {
  return join(dataDir, 'artifacts');
}

/** Bundles of instructions that operators put there. */
export function skillsFolderOf({ dataDir }: Config): string {
  return join(dataDir, 'skills');
}

/** What no command of a persona's may see, should it lie among the system's programs. */
export function hiddenFrom({ dataDir, groupsDir, secretFiles }: Config, configFile: string | null): string[] {
  const files = [configFile, ...secretFiles.map(({ path }) => path)].filter((file) => file !== null);
  return [dataDir, groupsDir, ...files];
}

/** Two that start together finish a broken restore one after the other; a new restore takes longer than this. */
const TRIES = 20;
const PAUSE_MS = 100;

/**
 * For every command that opens the data folder: finishes a restore that was broken off, closes what others could read,
 * and keeps a restore from beginning until the lock is released. Throws Fault while a restore is at work.
 */
export async function enterData(
  folders: DataFolders,
  log: Log,
  clock: Clock = systemClock,
): Promise<DataLock> {
  for (let tries = 0; tries < TRIES; tries++) {
    const shared = await shareLock(restoreLockOf(folders));
    if (shared !== null && !(await isHalfRestored(folders.dataDir))) {
      for (const open of await closeToOthers(folders.dataDir, folders.groupsDir)) log.warn({}, open);
      return shared;
    }
    shared?.release();
    const alone = shared && (await takeLock(restoreLockOf(folders)));
    if (alone) await finishBroken(folders, log).finally(() => alone.release());
    else await clock.sleep(PAUSE_MS);
  }
  const { dataDir } = folders;
  throw new Fault('already_running', `A restore is at work on ${dataDir}; try again when it is done.`);
}

/** For a restore: no other command is in the data folder, or comes in. Throws Fault where one is. */
export async function aloneInData(folders: DataFolders, log: Log): Promise<DataLock> {
  for (;;) {
    const alone = await takeLock(restoreLockOf(folders));
    if (!alone) {
      const what = `Another command of coterie is at work on ${folders.dataDir}; try again when it is done.`;
      throw new Fault('already_running', what);
    }
    if (!(await isHalfRestored(folders.dataDir))) return alone;
    // The folder with the lock may be another one afterwards.
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
