/** Checked before anything starts: the native modules fit this Node, and the folders are writable. */
import { constants } from 'node:fs';
import { access, mkdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import Database from 'better-sqlite3';
import { describe, Fault } from './core/errors.js';
import { keepHandle } from './core/v8.js';
import type { DataFolders } from './operating/restore-plan.js';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** Throws Fault `configuration`. Creates nothing but the two folders. */
export async function checkPremises(config: DataFolders): Promise<void> {
  const problems = [databaseProblem(), ...(await folderProblems(config))].filter((each) => each !== null);
  if (problems.length > 0) throw new Fault('configuration', problems.join('\n'));
}

/** null if SQLite's binding loads. */
export function databaseProblem(): string | null {
  try {
    keepHandle(new Database(':memory:')).close();
    return null;
  } catch (error) {
    return nativeProblem('better-sqlite3', error);
  }
}

/** null if pictures can be decoded. */
export async function picturesProblem(): Promise<string | null> {
  try {
    await import('sharp');
    return null;
  } catch (error) {
    return nativeProblem('sharp', error);
  }
}

/** Node's message has the NODE_MODULE_VERSION of the module and that of the process. */
function nativeProblem(name: string, error: unknown): string {
  const words = describe(error);
  const [built, wanted] = [...words.matchAll(/NODE_MODULE_VERSION (\d+)/g)].map(([, number]) => number);
  const remedy = `run "npm rebuild ${name}" in ${ROOT} with this Node, ${process.version}`;
  if (built === undefined)
    return `${name} cannot be loaded: ${remedy}. Node says: ${words.split('\n', 1)[0]}`;
  const versions =
    wanted === undefined ? '' : ` (its NODE_MODULE_VERSION is ${built}, that of this one ${wanted})`;
  return `${name} was built for another version of Node${versions}: ${remedy}, or start coterie with the other one.`;
}

/** One sentence for each of `data_dir` and `groups_dir` that cannot be used. Missing folders are created. */
export async function folderProblems({ dataDir, groupsDir }: DataFolders): Promise<string[]> {
  const found = await Promise.all([
    folderProblem('data_dir', dataDir),
    folderProblem('groups_dir', groupsDir),
  ]);
  return found.filter((each) => each !== null);
}

async function folderProblem(key: string, folder: string): Promise<string | null> {
  try {
    await mkdir(folder, { recursive: true });
    await access(folder, constants.R_OK | constants.W_OK | constants.X_OK);
    return null;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const name = `${key} (${folder})`;
    if (code === 'EROFS') {
      return `${name} is read-only: its file system is mounted so. Mount it so that it can be written, or set another folder.`;
    }
    if (code === 'EACCES' || code === 'EPERM') {
      const who = `the user who runs coterie (uid ${process.getuid?.() ?? 'unknown'})`;
      return `${name} is read-only, or closed, for ${who}: give the folder to that user, or set another one.`;
    }
    return `${name} must be a folder that can be read and written: ${describe(error)}`;
  }
}
