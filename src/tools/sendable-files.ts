/**
 * Which file a path of a model's means, for `send_message`, and whether it may go: files of the persona itself, of the
 * chat's log, and what was sent in the chat, wherever links lead in the end. A path that leads elsewhere is refused before
 * anybody looks whether there is a file.
 */
import { readdir, realpath, stat } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import type { Archives } from '../core/archive.js';
import type { OutgoingFile } from '../core/channel.js';
import type { ChatId } from '../core/ids.js';
import { composed, nameOnDisk, pathOnDisk } from '../core/names-on-disk.js';
import type { Target } from './authorise.js';
import { isNoMessages } from './files/attachment.js';

export type FoundFile =
  | { kind: 'file'; file: OutgoingFile }
  /** It may not be sent from here, whether it is there or not. */
  | { kind: 'forbidden' }
  | { kind: 'missing' };

/** Where files are, and which of them may go. */
export interface Reach {
  /** The folders that a path may be relative to, in this order; `flat`: a name alone. */
  bases: { folder: string; flat?: true }[];
  /** The folders in which it must lie. */
  within: string[];
  groupsDir: string;
  /** What lies in a chat's folder of archives goes only if this says so. */
  maySendArchive(chatId: ChatId, file: string): Promise<boolean>;
}

interface Folders {
  groupsDir: string;
  /** `data/media`: a folder for each chat. */
  mediaFolder: string;
  archives: Pick<Archives, 'find'>;
}

/** What a persona may send of a chat: nothing of other personas, and of its archives those that were not reset. */
export function reachOf({ groupsDir, mediaFolder, archives }: Folders, { chatId, personaId }: Target): Reach {
  const chat = join(groupsDir, chatId);
  const media = join(mediaFolder, chatId);
  return {
    bases: [{ folder: chat }, { folder: media, flat: true }],
    within: [...[nameOnDisk(chat, personaId), 'memory', ARCHIVE].map((name) => join(chat, name)), media],
    groupsDir,
    async maySendArchive(of, file) {
      const found = of === chatId ? await archives.find(of, file) : null;
      return found !== null && !found.reset && found.personaId === personaId;
    },
  };
}

/** What an owner may have sent from a control chat: any chat's, but no archive that was reset. */
export function reachOfOwner(folders: Folders, target: Target): Reach {
  const { groupsDir, mediaFolder, archives } = folders;
  const { bases } = reachOf(folders, target);
  return {
    bases: [...bases, { folder: groupsDir }, { folder: mediaFolder }],
    within: [groupsDir, mediaFolder],
    groupsDir,
    maySendArchive: async (of, file) => (await archives.find(of, file))?.reset === false,
  };
}

export async function findFile(path: string, reach: Reach): Promise<FoundFile> {
  if (path.includes('\0')) return { kind: 'forbidden' };
  const named = await Promise.all(
    reach.bases.map(async (base) => ({ ...base, full: await fullPath(base.folder, path) })),
  );
  const candidates = named
    .filter(({ folder, full, flat }) => isBelow(full, folder) && (!flat || dirname(full) === folder))
    .filter(({ full }) => reach.within.some((root) => isBelow(full, root)));
  if (candidates.length === 0) return { kind: 'forbidden' };
  const real = {
    groupsDir: (await realPath(reach.groupsDir)) ?? reach.groupsDir,
    within: (await Promise.all(reach.within.map(realPath))).filter((root) => root !== null),
  };
  for (const { full } of candidates) {
    const found = await realPath(full);
    if (found === null) continue;
    if (!(await mayGo(full, reach, reach)) || !(await mayGo(found, real, reach)))
      return { kind: 'forbidden' };
    if ((await stat(found)).isFile())
      return { kind: 'file', file: { path: found, name: composed(basename(full)) } };
  }
  return { kind: 'missing' };
}

/** What leads out of the folder is left as it is: then nobody looks whether there is anything. */
async function fullPath(folder: string, path: string): Promise<string> {
  const full = resolve(folder, path);
  if (!isBelow(full, folder)) return full;
  return join(folder, ...(await pathOnDisk(folder, relative(folder, full).split(sep))));
}

async function mayGo(
  path: string,
  { within, groupsDir }: Pick<Reach, 'within' | 'groupsDir'>,
  { maySendArchive }: Reach,
): Promise<boolean> {
  if (!within.some((root) => isBelow(path, root))) return false;
  const [chatId = '', folder, ...file] = relative(groupsDir, path).split(sep);
  // On some disks capitals make no difference.
  return folder?.toLowerCase() !== ARCHIVE || maySendArchive(chatId, file.join(sep));
}

const ARCHIVE = 'archive';

/** At any depth, but in no hidden folder: programs keep there what nobody is to see. */
function isBelow(path: string, root: string): boolean {
  const names = relative(root, path).split(sep);
  return names.every((name) => name !== '' && !name.startsWith('.'));
}

async function realPath(path: string): Promise<string | null> {
  try {
    return await realpath(path);
  } catch (error) {
    if (error instanceof Error && 'code' in error && NOTHING_THERE.has(String(error.code))) return null;
    throw error;
  }
}

const NOTHING_THERE = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG']);

export interface ListedFile {
  name: string;
  bytes: number;
  /** When it was last written, ms. */
  at: number;
}

/** The newest files of a folder; none where there is no folder. */
export async function newestFiles(folder: string, most: number): Promise<ListedFile[]> {
  const names = (await realPath(folder)) === null ? [] : await readdir(folder);
  const found: ListedFile[] = [];
  for (const name of names) {
    const real = isNoMessages(name) ? null : await realPath(join(folder, name));
    if (real === null) continue;
    const { size, mtimeMs } = await stat(real);
    found.push({ name, bytes: size, at: mtimeMs });
  }
  return found.sort((one, other) => other.at - one.at).slice(0, most);
}
