/** The root folders of a call. The guard (`paths.ts`) keeps every path inside; `shell` shows the same to commands. */
import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import type { AgentPlace, Authorisation } from '../../core/authorisation.js';
import { isBelow, isWithin, made, realOnes, realOrNull } from '../../core/file-access.js';
import { nameOnDisk } from '../../core/file-names.js';
import type { PromptFiles } from '../../core/origin.js';
import type { Skill, Skills } from '../../core/skills.js';
import { BOARD_CHAT } from '../../core/task.js';
import { mayActAnywhere, type ToolTarget } from '../authorise.js';

export interface ToolFolders {
  /** `data/work`: a folder per chat, with one per persona in it. */
  workFolder: string;
  /** `data/media`: received files, one folder per chat. */
  mediaFolder: string;
  /** `data/workspace`: the workspace of owners' control chats and tasks. */
  workspaceFolder: string;
  /** `data/skills`, read-only: the workspace has a link there. */
  skillsFolder: string;
  /** The readable skills, wherever they are; null: the turn has none. */
  skills: Skills | null;
  /** The gateway's own folders and files: closed even inside an open folder. */
  hidden: readonly string[];
  /** Marks lines from outside in files that prompts show. */
  promptFiles: PromptFiles;
  /** Of a persona's folder. Default: `QUOTA`. */
  quota?: Quota;
}

export interface Quota {
  bytes: number;
  entries: number;
}

const QUOTA: Quota = { bytes: 200_000_000, entries: 20_000 };
/** Of other folders below `data_dir` (workspace, artifacts). `agents.roots` have none. */
const LARGE_QUOTA: Quota = { bytes: 2_000_000_000, entries: 100_000 };

export interface Root {
  /** Absolute, links resolved. */
  folder: string;
  isReadOnly: boolean;
  /** null: unlimited, since the disk is the operator's. */
  quota: Quota | null;
}

/** Name of the folder of skills, next to a call's own files. */
export const SKILLS = 'skills';

export interface FileRoots {
  /** `skills`: only skills can be read. */
  kind: 'persona' | 'workspace' | 'agent' | 'skills';
  /** Start of relative paths, an absolute path in one of the roots; if in none, no command runs. */
  start: string;
  roots: readonly Root[];
  /** The folder meant by `media/`, one of the roots; null: none. */
  media: string | null;
  /** They are among the roots. */
  skills: readonly Skill[];
  /** Whether `skills/` means these, or a folder of the caller's own. */
  showsSkills: boolean;
  /** Links resolved. Paths inside these are in no root, except roots that are inside them themselves. */
  closed: readonly string[];
}

/** `isTainted`: the model has read words from outside, so an agent may only read its shared space. */
export async function rootsFor(
  folders: ToolFolders,
  caller: Authorisation,
  isTainted: boolean,
): Promise<FileRoots> {
  if (caller.agent !== undefined) return rootsOfAgent(folders, caller.chatId, caller.agent, isTainted);
  return (await mayActAnywhere(caller)) ? rootsOfOwner(folders, caller) : rootsOfPersona(folders, caller);
}

/** For an owner's request in a control chat. */
async function rootsOfOwner(folders: ToolFolders, { chatId }: ToolTarget): Promise<FileRoots> {
  const start = await made(folders.workspaceFolder);
  const media = await made(folders.mediaFolder, chatId);
  const { skills, skillRoots, closed } = await shared(folders);
  const toRead = [media, ...(await realOnes([folders.skillsFolder]))];
  const roots = [writable(start, LARGE_QUOTA), ...toRead.map(readable), ...skillRoots];
  const showsSkills = await areShown(skills, folders, start);
  return { kind: 'workspace', start, roots, media, skills, showsSkills, closed };
}

/** Its working folder, the files received in its chat, and skills. */
export async function rootsOfPersona(
  folders: ToolFolders,
  { chatId, personaId }: ToolTarget,
): Promise<FileRoots> {
  const chat = join(folders.workFolder, chatId);
  const start = await made(chat, nameOnDisk(chat, personaId));
  const media = await made(folders.mediaFolder, chatId);
  const { skills, skillRoots, closed } = await shared(folders);
  const roots = [writable(start, folders.quota ?? QUOTA), readable(media), ...skillRoots];
  // Nothing can be mounted over a file, which then could not be removed.
  const isTaken = async () => (await lstat(join(start, SKILLS)).catch(() => null))?.isFile() === true;
  const showsSkills = skills.length > 0 && !(await isTaken());
  return { kind: 'persona', start, roots, media, skills, showsSkills, closed };
}

/** For callers whose only files are those of skills. Nothing in the start folder is reachable: it is no root. */
export async function rootsOfSkills(folders: ToolFolders): Promise<FileRoots> {
  const { skills, skillRoots: roots, closed } = await shared(folders);
  const common = { roots, skills, closed, start: folders.workFolder, media: null };
  return { kind: 'skills', showsSkills: true, ...common };
}

/** A program's task has no chat with received files. */
async function rootsOfAgent(
  folders: ToolFolders,
  chatId: string,
  agent: AgentPlace,
  isTainted: boolean,
): Promise<FileRoots> {
  const { skills, skillRoots, closed } = await shared(folders);
  const media = chatId === BOARD_CHAT ? null : await made(folders.mediaFolder, chatId);
  const work = (await realOrNull(folders.workFolder)) ?? folders.workFolder;
  const quotaOf = (folder: string) => {
    if (isBelow(folder, work)) return folders.quota ?? QUOTA;
    return closed.some((each) => isBelow(folder, each)) ? LARGE_QUOTA : null;
  };
  const common = await made(agent.shared.folder);
  const mayWrite = agent.shared.mayWrite && !isTainted;
  // A root that has since become a link leads wherever the link's author wants.
  const stillReal = await Promise.all(agent.roots.map(async (root) => (await realOrNull(root)) === root));
  const own = [...agent.roots.filter((_, n) => stillReal[n]), await made(agent.space)];
  if (mayWrite) own.push(common);
  const toRead = mayWrite ? [] : [common];
  if (media !== null) toRead.push(media);
  toRead.push(...(await realOnes([folders.skillsFolder])));
  const toWrite = [...new Set(own)].map((folder) => writable(folder, quotaOf(folder)));
  const roots = [...toWrite, ...toRead.map(readable), ...skillRoots];
  const begins = agent.cwd === null ? null : ((await realOrNull(agent.cwd)) ?? agent.cwd);
  const start = begins ?? own[0] ?? agent.space;
  const showsSkills = await areShown(skills, folders, start);
  return { kind: 'agent', start, roots, media, skills, showsSkills, closed };
}

async function shared({ skills: offered, hidden }: ToolFolders) {
  const skills = (await offered?.list())?.skills ?? [];
  const skillRoots = skills.map(({ folder }) => readable(folder));
  return { skills, skillRoots, closed: await realOnes(hidden) };
}

function readable(folder: string): Root {
  return { folder, isReadOnly: true, quota: null };
}

function writable(folder: string, quota: Quota | null): Root {
  return { folder, isReadOnly: false, quota };
}

/** A foreign folder may have its own one of that name; a link of ours leads to the same. */
async function areShown(skills: readonly Skill[], folders: ToolFolders, start: string): Promise<boolean> {
  if (skills.length === 0) return false;
  const at = join(start, SKILLS);
  const found = await lstat(at).catch(() => null);
  if (found === null) return true;
  return found.isSymbolicLink() && (await realOrNull(at)) === (await realOrNull(folders.skillsFolder));
}

/** The innermost decides: a root in a closed folder is open, a closed folder in a root is closed. */
export function rootOf({ roots, closed }: FileRoots, path: string): Root | null {
  const longest = (a: Root, b: Root) => b.folder.length - a.folder.length;
  const root = roots.filter(({ folder }) => isWithin(path, folder)).sort(longest)[0];
  const isClosed = closed.some((each) => isWithin(path, each) && each.length > (root?.folder.length ?? 0));
  return root === undefined || isClosed ? null : root;
}
