/**
 * The one guard for paths that a model names. They are relative to the persona's working folder; `media/` stands for what
 * people sent in the chat, for reading alone. Wherever links lead, what is opened lies really in one of these two folders,
 * and is a file: principles, configuration, database, other chats and other personas are outside of both.
 */
import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { chmod, type FileHandle, lstat, mkdir, open, realpath, rename, rm } from 'node:fs/promises';
import { dirname, join, normalize, relative, sep } from 'node:path';
import {
  DEEPEST,
  entriesBelow,
  entryOf,
  type OpenFolder,
  openFile,
  openWithin,
  within,
} from '../../core/beneath.js';
import { sizeInWords } from '../../core/bytes.js';
import type { Target } from '../authorise.js';

/** Where the folders of all chats are: `data/work` and `data/media`. */
export interface Folders {
  workFolder: string;
  mediaFolder: string;
}

/** The two folders of one persona in one chat, links followed. */
export interface Places {
  work: string;
  media: string;
}

/** What a working folder may hold. */
export interface Quota {
  bytes: number;
  entries: number;
}

export const QUOTA: Quota = { bytes: 200_000_000, entries: 20_000 };
/** The name under which a persona reads what people sent. */
export const MEDIA = 'media';
/** What the working folder is called inside the sandbox of `shell`: models give paths as they see them there. */
export const HOME_INSIDE = '/work';

const LONGEST_PATH = 4096;
const LONGEST_NAME = 255;
const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;

/** A path that leads nowhere, or where nothing may be: a sentence for the model. */
export class PathRefusal extends Error {
  override readonly name = 'PathRefusal';

  constructor(
    message: string,
    /** `missing`: there is nothing of that name, and nothing forbids it. */
    readonly kind: 'missing' | 'refused' = 'refused',
  ) {
    super(message);
  }
}

/** Makes the folders at their first use, for nobody but the gateway's user. */
export async function placesOf(
  { workFolder, mediaFolder }: Folders,
  { chatId, personaId }: Target,
): Promise<Places> {
  const own = async (...names: [string, ...string[]]) => {
    const folder = join(...names);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return realpath(folder);
  };
  return { work: await own(workFolder, chatId, personaId), media: await own(mediaFolder, chatId) };
}

/** Where a path leads by its words alone. */
export interface Located {
  root: string;
  /** Below the root; empty: the root itself. */
  names: string[];
  isMedia: boolean;
  /** As a model names it. */
  shown: string;
}

/** Pure. Throws a `PathRefusal`. */
export function locate({ work, media }: Places, path: string): Located {
  if (path.includes('\0')) throw new PathRefusal('A path holds no null byte.');
  if (Buffer.byteLength(path) > LONGEST_PATH) throw new PathRefusal('This path is too long.', 'missing');
  const plain = normalize(`${asRelative(path, [work, HOME_INSIDE])}/.`);
  const names = plain.split(sep).filter((name) => name !== '' && name !== '.');
  if (plain.startsWith(sep) || names.includes('..')) throw new PathRefusal(OUTSIDE);
  if (names.some((name) => Buffer.byteLength(name) > LONGEST_NAME)) {
    throw new PathRefusal('A name in this path is too long.', 'missing');
  }
  const shown = names.join('/') || '.';
  // On some disks capitals make no difference.
  const isMedia = names[0]?.toLowerCase() === MEDIA;
  return isMedia
    ? { root: media, names: names.slice(1), isMedia, shown }
    : { root: work, names, isMedia, shown };
}

const OUTSIDE =
  'Permission denied: this path leads out of your working folder. Give one relative to it, like notes/today.md; what ' +
  'people sent here is in media/.';

function asRelative(path: string, roots: string[]): string {
  const root = roots.find((each) => path === each || path.startsWith(`${each}/`));
  return root === undefined ? path || '.' : `.${path.slice(root.length)}`;
}

/** A file that was opened for reading, to be closed by whoever asked. */
export interface OpenedFile {
  handle: FileHandle;
  bytes: number;
  /** Its real path, whether it is what people sent, and where it lies below its folder. */
  real: string;
  isMedia: boolean;
  names: string[];
}

export async function openToRead(places: Places, path: string): Promise<OpenedFile> {
  const located = locate(places, path);
  const names = await realNames(located);
  const name = names.at(-1);
  if (name === undefined) throw new PathRefusal(`${located.shown} is a folder.`);
  return within(located.root, names.slice(0, -1), async (folder) => {
    await refuseUnlessFile(folder, name, located.shown);
    const handle = await openFile(folder, name);
    if (handle === null) throw new PathRefusal(`${located.shown} is no file.`);
    const { size } = await handle.stat();
    const real = join(located.root, ...names);
    return { handle, bytes: size, real, isMedia: located.isMedia, names };
  }).catch(refuse(located));
}

/** The folder that a path leads to, for `use` to look into. */
export async function inFolder<T>(
  places: Places,
  path: string,
  use: (folder: OpenFolder, at: { names: string[]; located: Located }) => Promise<T>,
): Promise<T> {
  const located = locate(places, path);
  const names = await realNames(located);
  return within(located.root, names, (folder) => use(folder, { names, located })).catch(refuse(located));
}

/**
 * Writes a file whole or not at all, within the quota. `expected`: what the writer has read; where the file is another
 * by now, nothing is written.
 */
export async function writeWhole(
  places: Places,
  path: string,
  bytes: Uint8Array,
  { signal, quota = QUOTA, expected }: { signal: AbortSignal; quota?: Quota; expected?: Uint8Array },
): Promise<'written' | 'changed'> {
  const located = locate(places, path);
  if (located.isMedia) throw new PathRefusal('Permission denied: media/ is only for reading.');
  const names = await realNames(located, 'or new');
  const name = names.at(-1);
  if (name === undefined) throw new PathRefusal(`${located.shown} is a folder.`);
  // What lies deeper could not be counted: the folder would be full from then on.
  if (names.length > DEEPEST) throw new PathRefusal('Nothing was written: this path is too deep.');
  await refuseOver(quota, places, bytes.length, located);
  const write = async (folder: OpenFolder) => {
    const before = await refuseUnlessFile(folder, name, located.shown).catch((error: unknown) => {
      if (codeOf(error) === 'ENOENT') return null;
      throw error;
    });
    const temporary = entryOf(folder, `.${randomUUID()}.tmp`);
    try {
      const handle = await open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
      try {
        await handle.writeFile(bytes);
        await handle.sync();
      } finally {
        await handle.close();
      }
      if (before !== null) await chmod(temporary, before.mode & 0o777);
      if (expected !== undefined && !(await holds(folder, name, expected))) return 'changed';
      if (signal.aborted) throw new PathRefusal('Stopped: nothing was written.');
      await rename(temporary, entryOf(folder, name));
      return 'written';
    } finally {
      await rm(temporary, { force: true });
    }
  };
  return within(located.root, names.slice(0, -1), write, madeWithin).catch(refuse(located));
}

/** Reads a file that was opened, and no more than `most` bytes of it, also where it grows meanwhile. */
export async function readUpTo(handle: FileHandle, most: number): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let read = 0;
  while (read < most) {
    const piece = Buffer.allocUnsafe(Math.min(most - read, 1 << 20));
    const { bytesRead } = await handle.read(piece, 0, piece.length, read);
    if (bytesRead === 0) break;
    pieces.push(piece.subarray(0, bytesRead));
    read += bytesRead;
  }
  return Buffer.concat(pieces);
}

/** How much a working folder holds; counted no further than a quota goes. */
export async function usedBy(
  work: string,
  quota: Quota,
): Promise<{ bytes: number; entries: number; isOver: boolean }> {
  const used = { bytes: 0, entries: 0 };
  const isOver = () => used.bytes > quota.bytes || used.entries > quota.entries;
  const counted = await within(work, [], async (root) => {
    for await (const entry of entriesBelow(root)) {
      used.entries++;
      // What cannot be counted is as good as too much.
      if (entry.isClosed) return false;
      if (entry.kind === 'file') {
        used.bytes += (await lstat(entryOf(entry.folder, entry.name)).catch(() => null))?.size ?? 0;
      }
      if (isOver()) return true;
    }
    return true;
  });
  return { ...used, isOver: !counted || isOver() };
}

async function refuseOver(quota: Quota, { work }: Places, more: number, { root, names }: Located) {
  const before = await lstat(join(root, ...names)).catch(() => null);
  const replaced = before?.isFile() ? before.size : 0;
  // Whoever has too much may make it less.
  if (before !== null && more <= replaced) return;
  const used = await usedBy(work, quota);
  const entries = used.entries + (before === null ? 1 : 0);
  if (!used.isOver && used.bytes - replaced + more <= quota.bytes && entries <= quota.entries) return;
  throw new PathRefusal(
    `Nothing was written: your working folder is full (at most ${sizeInWords(quota.bytes)} and ${quota.entries} ` +
      'files and folders). Make a file in it shorter first.',
  );
}

/** The names below the root, all of them real: no link among them. `or new`: the last ones need not be there. */
async function realNames(located: Located, last: 'there' | 'or new' = 'there'): Promise<string[]> {
  const { root, names, shown } = located;
  const full = join(root, ...names);
  const real = await realpath(full).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT' && last === 'or new') return null;
    return refuse(located)(error);
  });
  if (real !== null) {
    if (real !== root && !real.startsWith(root + sep)) throw new PathRefusal(OUTSIDE);
    return relative(root, real).split(sep).filter(Boolean);
  }
  if ((await lstat(full).catch(() => null)) !== null) {
    throw new PathRefusal(`${shown} is a link that leads nowhere.`);
  }
  const above = { ...located, names: names.slice(0, -1), shown: dirname(shown) };
  return [...(await realNames(above, last)), names.at(-1) ?? ''];
}

/** As `openWithin`, with a folder made that is not there. */
async function madeWithin(folder: OpenFolder, name: string): Promise<OpenFolder> {
  await mkdir(entryOf(folder, name), { mode: 0o700 }).catch((error: unknown) => {
    if (codeOf(error) !== 'EEXIST') throw error;
  });
  return openWithin(folder, name);
}

/** Before it is opened: opening a device may have effects of its own. */
async function refuseUnlessFile(folder: OpenFolder, name: string, shown: string) {
  const found = await lstat(entryOf(folder, name));
  if (found.isDirectory()) throw new PathRefusal(`${shown} is a folder.`);
  if (!found.isFile()) throw new PathRefusal(`${shown} is no file.`);
  return found;
}

async function holds(folder: OpenFolder, name: string, expected: Uint8Array): Promise<boolean> {
  const handle = await openFile(folder, name);
  if (handle === null) return false;
  try {
    return (await readUpTo(handle, expected.length + 1)).equals(expected);
  } finally {
    await handle.close();
  }
}

/** What the system says of a path, in words for a model; anything else is thrown on. */
function refuse({ shown }: Pick<Located, 'shown'>): (error: unknown) => never {
  return (error) => {
    switch (codeOf(error)) {
      case 'ENOENT':
        throw new PathRefusal(`There is no ${shown}.`, 'missing');
      case 'ENOTDIR':
      case 'ELOOP':
        throw new PathRefusal(`There is no ${shown}: something on the way to it is no folder.`, 'missing');
      case 'EACCES':
      case 'EPERM':
        throw new PathRefusal(`${shown} cannot be opened: its rights forbid it.`);
      case 'ENXIO':
      case 'EISDIR':
        throw new PathRefusal(`${shown} is no file.`);
      case 'ENAMETOOLONG':
        throw new PathRefusal('This path is too long.');
      case 'ENOSPC':
      case 'EDQUOT':
        throw new PathRefusal('Nothing was written: the disk is full.');
      default:
        throw error;
    }
  };
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined;
}
