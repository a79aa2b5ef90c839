/**
 * The last phase of a restore: a plan of renames, written to disk before the first one, so that the next command can
 * finish it after a crash. First the old folders move aside, then the new ones take their place.
 */
import * as fs from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { Fault } from '../core/errors.js';
import { realAsFarAsThere } from '../core/file-access.js';
import { syncFolder } from '../core/write-whole.js';

/** If a folder cannot be renamed, a restore keeps its old content in such a subfolder. Never in a backup. */
export const INSIDE = '.kept-';

export interface DataFolders {
  dataDir: string;
  groupsDir: string;
}

export type Rename = (from: string, to: string) => Promise<void>;

export interface RestorePlan {
  /** Already done if `to` exists. */
  aside: Move[];
  /** Already done if `from` is gone. */
  place: Move[];
  kept: string[];
  stages: string[];
}

interface Move {
  from: string;
  to: string;
}

const STAGE = 'restoring';
export const PLAN = 'plan.json';
/** Locks are on files, and survive a rename of their folder. */
export const LOCK = /\.lock(-\w+)?$/;

export async function isHalfRestored(dataDir: string): Promise<boolean> {
  const stages = await Promise.all(stagesOf(await realAsFarAsThere(resolve(dataDir))).map(exists));
  return stages.includes(true);
}

/** Finishes an interrupted restore, or removes what it had unpacked. Returns the paths of the old folders. */
export async function finishRestore({ dataDir, groupsDir }: DataFolders, rename?: Rename): Promise<string[]> {
  const folders = [dataDir, groupsDir].map((folder) => realAsFarAsThere(resolve(folder)));
  const stages = (await Promise.all(folders)).flatMap(stagesOf);
  for (const stage of stages) {
    const text = await fs.readFile(join(stage, PLAN), 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return null;
      throw new Fault('store_unavailable', `The plan of a restore in ${stage} cannot be read`, error);
    });
    if (text === null) continue;
    const plan = JSON.parse(text) as RestorePlan;
    await carryOut(plan, rename);
    return plan.kept;
  }
  for (const stage of stages) await fs.rm(stage, { recursive: true, force: true });
  return [];
}

export async function carryOut(
  { aside, place, stages }: RestorePlan,
  rename: Rename = fs.rename,
): Promise<void> {
  try {
    for (const { from, to } of aside) {
      if ((await exists(to)) || !(await exists(from)) || !(await exists(dirname(to)))) continue;
      await rename(from, to);
    }
    for (const { from, to } of place) {
      if (!(await exists(from))) {
        if (await exists(to)) continue;
        throw new Error(`${from} is gone, and ${to} is not there`);
      }
      await makeWay(to);
      await rename(from, to);
    }
    for (const folder of new Set([...aside, ...place].map(({ to }) => dirname(to)))) {
      if (await exists(folder)) await syncFolder(folder);
    }
    for (const stage of stages.toReversed()) await fs.rm(stage, { recursive: true, force: true });
  } catch (error) {
    throw new Fault(
      'store_unavailable',
      'The restore is half done, and nothing is lost. Remove what is in its way; the next command goes on with it',
      error,
    );
  }
}

/** An empty folder, or one with nothing but a command's locks, may go. */
async function makeWay(path: string): Promise<void> {
  const found = await fs.lstat(path).catch(() => null);
  if (found === null) return;
  const isEmpty = found.isDirectory() && (await fs.readdir(path)).every((name) => LOCK.test(name));
  if (!isEmpty) throw new Error(`${path} is in the way; move it elsewhere`);
  await fs.rm(path, { recursive: true });
}

/** The two possible staging folders: beside the folder, or in it. */
export function stagesOf(at: string): [string, string] {
  return [join(dirname(at), `.${basename(at)}.${STAGE}`), join(at, `.${STAGE}`)];
}

/** True also for a dangling link. */
export async function exists(path: string): Promise<boolean> {
  return fs.lstat(path).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return false;
      throw error;
    },
  );
}

/** A timestamp that no old folder has in its name yet. */
export async function unusedStamp(folders: string[], now: number): Promise<string> {
  const time = new Date(now).toISOString().replace(/[-:]|\.\d+/g, '');
  for (let n = 1; ; n++) {
    const stamp = n === 1 ? time : `${time}-${n}`;
    const taken = await Promise.all(
      folders.flatMap((at) => [
        exists(`${at}.before-${stamp}`),
        exists(join(at, `${INSIDE}${basename(at)}.before-${stamp}`)),
      ]),
    );
    if (!taken.includes(true)) return stamp;
  }
}
