/** Where things lie below `data_dir`, beside the database. */
import { join } from 'node:path';
import type { Config } from './config.js';
import { type Clock, systemClock } from './core/clock.js';
import { describe, Fault } from './core/errors.js';
import type { Log } from './core/log.js';
import { isHalfRestored, settle } from './operating/exchange.js';
import { closeToOthers, type DataLock, shareLock, takeLock } from './operating/lock.js';

/** Files that people sent: a folder for each chat. */
export function mediaFolderOf({ dataDir }: Pick<Config, 'dataDir'>): string {
  return join(dataDir, 'media');
}

/** Working folders of personas: a folder for each chat, in it one for each persona. */
export function workFolderOf({ dataDir }: Pick<Config, 'dataDir'>): string {
  return join(dataDir, 'work');
}

/** What turns saw, for `coterie replay`. */
export function recordsFolderOf({ dataDir }: Pick<Config, 'dataDir'>): string {
  return join(dataDir, 'replay');
}

export function clipboardFolderOf({ dataDir }: Pick<Config, 'dataDir'>): string {
  return join(dataDir, 'clipboard');
}

/** Chats that were exported and wait to be sent. */
export function exportsFolderOf({ dataDir }: Pick<Config, 'dataDir'>): string {
  return join(dataDir, 'exports');
}

/** The owner's: the plan, memory, and the files that tell an agent whom it works for. */
export function workspaceFolderOf({ dataDir }: Pick<Config, 'dataDir'>): string {
  return join(dataDir, 'workspace');
}

/** Files of agents, and a folder for each with its internal space and its transcripts. */
export function agentsFolderOf({ dataDir }: Pick<Config, 'dataDir'>): string {
  return join(dataDir, 'agents');
}

/** What came out of tasks and turns: a folder for each. */
export function artifactsFolderOf({ dataDir }: Pick<Config, 'dataDir'>): string {
  return join(dataDir, 'artifacts');
}

/** Bundles of instructions that operators put there. */
export function skillsFolderOf({ dataDir }: Pick<Config, 'dataDir'>): string {
  return join(dataDir, 'skills');
}

/** What no command of a persona's may see, should it lie among the system's programs. */
export function hiddenFrom(
  { dataDir, groupsDir, secretFiles }: Pick<Config, 'dataDir' | 'groupsDir' | 'secretFiles'>,
  configFile: string | null,
): string[] {
  const files = [configFile, ...secretFiles.map(({ path }) => path)].filter((file) => file !== null);
  return [dataDir, groupsDir, ...files];
}

// The way into the data folder, for every command that opens what is in it: a restore that was broken off is brought
// to its end first, what others could read is closed to them, and while somebody is inside, no restore begins.

type Where = Pick<Config, 'dataDir' | 'groupsDir'>;

/** Two that start together settle an old restore one after the other; a new one takes longer than this. */
const TRIES = 20;
const PAUSE_MS = 100;

/** Beside others. Throws Fault while a restore is at work. */
export async function enterData(where: Where, log: Log, clock: Clock = systemClock): Promise<DataLock> {
  const file = lockOf(where);
  for (let tries = 0; tries < TRIES; tries++) {
    const shared = await shareLock(file);
    if (shared !== null && !(await isHalfRestored(where.dataDir))) {
      for (const open of await closeToOthers(where.dataDir, where.groupsDir)) log.warn({}, open);
      return shared;
    }
    shared?.release();
    const alone = shared && (await takeLock(file));
    if (alone) await settleAs(where, log).finally(() => alone.release());
    else await clock.sleep(PAUSE_MS);
  }
  throw new Fault('already_running', `A restore is at work on ${where.dataDir}; try again when it is done.`);
}

/** Nobody else is in it, or comes in. Throws Fault where somebody is. */
export async function aloneInData(where: Where, log: Log): Promise<DataLock> {
  const alone = await takeLock(lockOf(where));
  if (!alone) {
    throw new Fault(
      'already_running',
      `Another command of coterie is at work on ${where.dataDir}; try again when it is done.`,
    );
  }
  try {
    await settleAs(where, log);
    return alone;
  } catch (error) {
    alone.release();
    throw error;
  }
}

async function settleAs({ dataDir }: Where, log: Log): Promise<void> {
  const settled = await settle(dataDir);
  if (settled?.outcome === 'finished') {
    log.warn({ kept: settled.kept }, 'a restore that was broken off is finished now; what was there is kept');
  }
  if (settled?.outcome === 'undone') {
    log.warn(
      { why: describe(settled.why) },
      'a restore that was broken off was taken back: all is as it was before',
    );
  }
}

function lockOf({ dataDir }: Where): string {
  return join(dataDir, 'restore.lock');
}
