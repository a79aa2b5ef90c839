/** An agent's place: the folders that it may reach, its working folder, and its environment. */

import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open, realpath } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, resolve } from 'node:path';
import type { AgentPlace } from '../core/authorisation.js';
import { codeOf, isWithin, made, realAsFarAsThere, realOnes } from '../core/file-access.js';
import { nameOnDisk } from '../core/file-names.js';
import type { Task } from '../core/task.js';
import type { ViapTask } from './viap/task.js';

export interface AgentFolders {
  /** `data/workspace`, links resolved. */
  workspace: string;
  /** `data/artifacts` */
  artifacts: string;
  /** `data/work`: a folder per chat, with one per persona in it. */
  work: string;
  /** `agents.roots`: those that exist. */
  further: readonly string[];
}

/** The agent's internal spaces, absolute paths: that of the task's chat, and the one shared by its tasks. */
interface Spaces {
  own: string;
  shared: string;
}

/** Who gave the task, with their present rights. */
export interface TaskGiver {
  isOwner: boolean;
  /** Given in a chat that only owners read. */
  isAmongOwners: boolean;
}

/** `viap`: a delegated task. Only owners' tasks reach the workspace and artifacts of other tasks. */
export async function placeOf(
  task: Task,
  viap: ViapTask | null,
  { folders, spaces, isOwner }: { folders: AgentFolders; spaces: Spaces; isOwner: boolean },
): Promise<AgentPlace> {
  const { parent } = task;
  const chat = parent && join(folders.work, parent.chatId);
  const own = parent && chat && (await made(join(chat, nameOnDisk(chat, parent.personaId))));
  const roots = [
    ...(isOwner ? [folders.workspace] : []),
    await made(isOwner ? folders.artifacts : join(folders.artifacts, task.id)),
    ...(own === null ? [] : [own]),
    ...(await realOnes(folders.further)),
  ];
  const given = viap?.cwd ?? null;
  // By default a persona's task runs in the persona's own folder, from which it can send files.
  const cwd = given === null ? (own ?? folders.workspace) : await within(resolve(own ?? '/', given), roots);
  return {
    id: task.agent,
    taskId: task.id,
    cwd,
    roots,
    space: spaces.own,
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

/** Resolves links and creates the folder if missing; null if that would be outside the roots. */
async function within(path: string, roots: readonly string[]): Promise<string | null> {
  const real = await realAsFarAsThere(path);
  return isInside(real, roots) ? made(real).catch(() => null) : null;
}

/** Files larger than this get no checksum. */
const MOST_BYTES = 2_000_000_000;

type FoundFile =
  /** `sha256`: null if not wanted, or impossible (a folder, or too large a file). */
  { kind: 'there'; sha256: string | null } | { kind: 'missing' | 'outside' };

/** Finds a file named in an agent's report within its folders. `isSummed`: with a checksum. */
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

/** From the working folder; a path that begins with a root's name (`artifacts/…`) may mean that root. */
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
  let file: FileHandle | undefined;
  try {
    const real = await realpath(path);
    if (!isInside(real, roots)) return OUTSIDE;
    // Opening a pipe must not block.
    file = await open(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const stat = await file.stat();
    if (stat.isDirectory()) return { kind: 'there', sha256: null };
    if (!stat.isFile()) return MISSING;
    if (!isSummed || stat.size > MOST_BYTES) return { kind: 'there', sha256: null };
    const sum = createHash('sha256');
    for await (const chunk of file.createReadStream({ autoClose: false, end: MOST_BYTES })) sum.update(chunk);
    return { kind: 'there', sha256: sum.digest('hex') };
  } catch (error) {
    if (!GONE.includes(codeOf(error))) throw error;
    return isInside(path, roots) ? MISSING : OUTSIDE;
  } finally {
    await file?.close();
  }
}

function isInside(path: string, roots: readonly string[]): boolean {
  return roots.some((root) => isWithin(path, root));
}

/** Missing or inaccessible: a loop of links, too long a name, a folder without permission. */
const GONE = ['ENOENT', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG', 'EACCES', 'EPERM', 'ENXIO'];
