/**
 * Where an agent works on a task: the folders that it may reach, the one in which its commands begin, and their
 * environment. A folder that lies outside of those is nobody's working folder: then no command runs.
 */
import { mkdir, realpath } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, resolve, sep } from 'node:path';
import { nameOnDisk } from '../core/names-on-disk.js';
import type { Task } from '../core/task.js';
import type { AgentPlace } from '../core/tool.js';
import type { ViapTask } from './viap/task.js';

export interface Folders {
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
export interface Spaces {
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
  { folders, spaces, isOwner }: { folders: Folders; spaces: Spaces } & Pick<TaskGiver, 'isOwner'>,
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
  const given = viap?.context.cwd ?? null;
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
  const { env, args } = viap.inputs;
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
