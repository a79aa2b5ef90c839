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

/** What owners' control chats and tasks work in. */
export function workspaceFolderOf({ dataDir }: Pick<Config, 'dataDir'>): string {
  return join(dataDir, 'workspace');
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

/** What was made on tasks and in chats: a folder for each task, or turn. */
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
