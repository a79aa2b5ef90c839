/** Where things lie below `data_dir`, beside the database. */
import { join } from 'node:path';
import type { Config } from './config.js';

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
