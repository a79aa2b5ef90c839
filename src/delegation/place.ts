/**
 * Where an agent works on a task: the folders that it may reach, the one in which its commands begin, and their
 * environment. A folder that lies outside of those is nobody's working folder: then no command runs.
 */

import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, mkdir, open, realpath } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, resolve, sep } from 'node:path';
import { nameOnDisk } from '../core/beneath.js';
import type { Task } from '../core/task.js';
import type { AgentPlace } from '../core/tool.js';
import type { ViapTask } from './viap/task.js';

export interface AgentFolders {
  /** `data/workspace`, links followed. */
  workspace: string;
  /** `data/artifacts` */
  artifacts: string;
  /** `data/work`: in it a folder for each chat, and in that one for each persona. */
  work: string;
  /** `agents.roots`: those that are there. */
  further: readonly string[];
}

/** The agent's internal spaces, absolute: of the task's chat, and the one that it shares with its other tasks. */
interface Spaces {
  own: string;
  shared: string;
}

/** On whose word a task is done, with the rights that they have now. */
export interface TaskGiver {
  isOwner: boolean;
  /** And said it where only owners hear of it. */
  isAmongOwners: boolean;
}

/**
 * `viap`: of a delegated task. The workspace, and what was made on other tasks, is reached on an owner's word alone: other
 * people's chats learn nothing of it.
 */
export async function placeOf(
  task: Pick<Task, 'id' | 'agent' | 'parent'>,
  viap: ViapTask | null,
  { folders, spaces, isOwner }: { folders: AgentFolders; spaces: Spaces } & Pick<TaskGiver, 'isOwner'>,
): Promise<AgentPlace> {
  const { parent } = task;
  const chat = parent && join(folders.work, parent.chatId);
  const own = parent && chat && (await made(join(chat, nameOnDisk(chat, parent.personaId))));
  const further = await Promise.all(folders.further.map(realFolder));
  const roots = [
    ...(isOwner ? [folders.workspace] : []),
    await made(isOwner ? folders.artifacts : join(folders.artifacts, task.id)),
    ...(own === null ? [] : [own]),
    ...further.filter((root) => root !== null),
  ];
  const given = viap?.cwd ?? null;
  // What a persona delegates without a word of where is done in its own folder, from which it can send files.
  const cwd = given === null ? (own ?? folders.workspace) : await within(resolve(own ?? '/', given), roots);
  return {
    ...{ id: task.agent, taskId: task.id, cwd, roots, space: spaces.own },
    shared: { folder: spaces.shared, mayWrite: isOwner },
    env: environmentOf(viap, isOwner ? folders.workspace : null),
  };
}

function environmentOf(viap: ViapTask | null, workspace: string | null): Record<string, string> {
  const usual: Record<string, string> =
    workspace === null ? {} : { OPENCLAW_WORKSPACE: workspace, MEMORY_DIR: join(workspace, 'memory') };
  if (viap === null) return usual;
  const { env, args } = viap;
  return { ...usual, VIAP_ARGS: JSON.stringify(args), ...env };
}

/** Links followed, and made where it is not there; null where that would be outside the roots. */
async function within(path: string, roots: readonly string[]): Promise<string | null> {
  const real = await realOf(path);
  if (real === null || !roots.some((root) => real === root || real.startsWith(`${root}${sep}`))) return null;
  return made(real).catch(() => null);
}

/** Where it really lies, or would lie if it were there; null: nowhere. */
async function realOf(path: string): Promise<string | null> {
  if (path.includes('\0') || !isAbsolute(path)) return null;
  try {
    return await realpath(path);
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    if (!isMissing || path === dirname(path)) return null;
    const above = await realOf(dirname(path));
    return above === null ? null : join(above, basename(path));
  }
}

async function made(folder: string): Promise<string> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  return realpath(folder);
}

async function realFolder(path: string): Promise<string | null> {
  return realpath(path).catch(() => null);
}

/** Of a longer file no sum is made. */
const MOST_BYTES = 2_000_000_000;

export type FoundFile =
  /** `sha256`: null where none was wanted, or none can be made (of a folder, or of a file that is too long). */
  { kind: 'there'; sha256: string | null } | { kind: 'missing' } | { kind: 'outside' };

/**
 * Looks for a file that an agent's report names: inside the folders that it could reach, links followed. What lies outside of
 * them is not opened. `isSummed`: its sum is wanted.
 */
export async function findArtifact(path: string, place: AgentPlace, isSummed: boolean): Promise<FoundFile> {
  if (path.includes('\0')) return MISSING;
  let end: FoundFile = MISSING;
  for (const candidate of candidatesOf(path, place)) {
    const found = await look(candidate, place.roots, isSummed);
    if (found.kind === 'there') return found;
    if (found.kind === 'outside') end = found;
  }
  return end;
}

const MISSING: FoundFile = { kind: 'missing' };
const OUTSIDE: FoundFile = { kind: 'outside' };

/**
 * A relative path starts at the working folder; one that begins with a root's own name (`artifacts/…`, or `artifacts/ID/…`
 * where that alone is reached) may mean that root.
 */
function candidatesOf(path: string, { cwd, roots }: AgentPlace): string[] {
  if (isAbsolute(path)) return [resolve(path)];
  const start = cwd ?? roots[0];
  const [first, second] = path.split('/');
  const named = roots.flatMap((root) => {
    const above = dirname(root);
    if (basename(root) === first) return [resolve(above, path)];
    return basename(root) === second && basename(above) === first ? [resolve(dirname(above), path)] : [];
  });
  return [...(start === undefined ? [] : [resolve(start, path)]), ...named];
}

async function look(path: string, roots: readonly string[], isSummed: boolean): Promise<FoundFile> {
  let real: string;
  try {
    real = await realpath(path);
  } catch (error) {
    if (!isGone(error)) throw error;
    return isInside(path, roots) ? MISSING : OUTSIDE;
  }
  if (!isInside(real, roots)) return OUTSIDE;
  return read(real, isSummed);
}

async function read(real: string, isSummed: boolean): Promise<FoundFile> {
  let file: FileHandle;
  try {
    // A pipe must not be waited for.
    file = await open(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (!isGone(error)) throw error;
    return MISSING;
  }
  try {
    const stat = await file.stat();
    if (stat.isDirectory()) return { kind: 'there', sha256: null };
    if (!stat.isFile()) return MISSING;
    if (!isSummed || stat.size > MOST_BYTES) return { kind: 'there', sha256: null };
    const sum = createHash('sha256');
    for await (const chunk of file.createReadStream({ autoClose: false, end: MOST_BYTES })) sum.update(chunk);
    return { kind: 'there', sha256: sum.digest('hex') };
  } finally {
    await file.close();
  }
}

function isInside(path: string, roots: readonly string[]): boolean {
  return roots.some((root) => path === root || path.startsWith(root.endsWith(sep) ? root : `${root}${sep}`));
}

/** Not there, or not for us: a loop of links, a name that is too long, a folder that may not be read. */
function isGone(error: unknown): boolean {
  const codes = ['ENOENT', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG', 'EACCES', 'EPERM', 'ENXIO'];
  return codes.includes((error as NodeJS.ErrnoException).code ?? '');
}
