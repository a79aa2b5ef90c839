/**
 * The only guard for paths named by a model. Wherever links lead, an opened file is a plain one, really inside a root
 * (`roots.ts`). Relative paths start in one folder; `media/` means received files, and `skills/` the skills, read-only.
 */
import { constants } from 'node:fs';
import { chmod, type FileHandle, lstat, open } from 'node:fs/promises';
import { isAbsolute, join, normalize, relative, sep } from 'node:path';
import {
  DEEPEST,
  entriesBelow,
  entryOf,
  madeWithin,
  type OpenFolder,
  openFile,
  within,
} from '../../core/beneath.js';
import { sizeInWords } from '../../core/cut.js';
import { codeOf, isWithin, nullIfMissing, realAsFarAsThere } from '../../core/file-access.js';
import { composed, pathOnDisk } from '../../core/file-names.js';
import type { Skill } from '../../core/skills.js';
import { writeWhole } from '../../core/write-whole.js';
import { type FileRoots, type Quota, type Root, rootOf, SKILLS } from './roots.js';

/** The folder name of received files. */
export const MEDIA = 'media';
/** The start folder's name inside the sandbox of `shell`: models use the paths that they see there. */
export const HOME_INSIDE = '/work';
/** The received files' name for agents, whose folders keep their own names inside. */
export const AGENTS_MEDIA_INSIDE = '/coterie/media';

/** Begins the name of a copy that is sent. */
export const SENT = 'sent-';

const LONGEST_PATH = 4096;
const LONGEST_NAME = 255;

/** The message is a sentence for the model. `missing`: nothing of that name exists, and nothing forbids it. */
export class PathRefusal extends Error {
  constructor(
    message: string,
    readonly kind: 'missing' | 'no file' | 'refused' = 'refused',
  ) {
    super(message);
  }
}

interface Located {
  root: Root;
  /** Below the root; empty for the root itself. */
  names: string[];
  /** In the model's terms. */
  shown: string;
}

/** Where a path leads through all links, there or not. Throws a `PathRefusal` outside of the roots. */
async function locate(allowed: FileRoots, path: string): Promise<Located> {
  const full = fullPath(allowed, path);
  const names = await pathOnDisk(sep, full.split(sep).filter(Boolean));
  const real = await realAsFarAsThere(join(sep, ...names));
  const root = rootOf(allowed, real);
  if (root === null) throw outside(allowed);
  return {
    root,
    names: relative(root.folder, real).split(sep).filter(Boolean),
    shown: shownAs(allowed, full) || '.',
  };
}

/** Pure. An absolute path without `.` and `..`. */
function fullPath(allowed: FileRoots, path: string): string {
  if (path.includes('\0')) throw new PathRefusal('A path holds no null byte.');
  if (Buffer.byteLength(path) > LONGEST_PATH) throw new PathRefusal('This path is too long.', 'missing');
  const { plain, names } = normalised(allowed, path);
  if (names.some((name) => Buffer.byteLength(name) > LONGEST_NAME)) {
    throw new PathRefusal('A name in this path is too long.', 'missing');
  }
  if (isAbsolute(plain)) return `/${names.join(sep)}`;
  if (allowed.showsSkills && names[0]?.toLowerCase() === SKILLS) {
    const inSkill = pathInSkill(allowed, names.slice(1));
    if (inSkill !== null) return inSkill;
  }
  // Some disks ignore case.
  return allowed.media !== null && names[0]?.toLowerCase() === MEDIA
    ? join(allowed.media, ...names.slice(1))
    : join(allowed.start, ...names);
}

/** By its place below `skills/`, or by its name; null: the caller's own file. Throws a `PathRefusal`. */
function pathInSkill({ kind, skills }: FileRoots, names: string[]): string | null {
  for (const depth of [2, 1]) {
    const called = composed(names.slice(0, depth).join('/'));
    const found =
      skills.find(({ place }) => composed(place) === called) ?? skills.find(({ name }) => name === called);
    if (found !== undefined) return join(found.folder, ...names.slice(depth));
  }
  // The workspace's own link leads to everything else there.
  if (kind === 'workspace' || kind === 'agent') return null;
  throw new PathRefusal(`There is no such skill. ${SKILLS}/ holds: ${placesIn(skills)}.`, 'missing');
}

function placesIn(skills: readonly Skill[]): string {
  return skills.map(({ place }) => place).join(', ') || 'nothing';
}

export function isSkills(allowed: FileRoots, path: string): boolean {
  return allowed.showsSkills && normalised(allowed, path).names.join() === SKILLS;
}

function normalised(allowed: FileRoots, path: string) {
  const plain = normalize(`${asRelative(allowed, path)}/.`);
  return { plain, names: plain.split(sep).filter((name) => name !== '' && name !== '.') };
}

/** Strips names for the start folder; an agent's folders have the same paths inside the sandbox. */
function asRelative({ kind, start }: FileRoots, path: string): string {
  if (kind === 'agent') {
    return isWithin(path, AGENTS_MEDIA_INSIDE) ? MEDIA + path.slice(AGENTS_MEDIA_INSIDE.length) : path || '.';
  }
  const home = [start, HOME_INSIDE].find((each) => isWithin(path, each));
  return home === undefined ? path || '.' : `.${path.slice(home.length)}`;
}

/** In the model's terms: the shortest path to anything reachable; empty for the start folder. */
export function shownAs({ kind, start, media, skills }: FileRoots, full: string): string {
  const skill = kind === 'agent' ? undefined : skills.find(({ folder }) => isWithin(full, folder));
  if (skill !== undefined) return join(SKILLS, skill.place, relative(skill.folder, full));
  if (media !== null && isWithin(full, media)) return join(MEDIA, relative(media, full));
  return isWithin(full, start) ? relative(start, full) : full;
}

function outside({ kind, roots, skills }: FileRoots): PathRefusal {
  if (kind === 'skills') {
    const what = `Only files of skills can be read here: ${SKILLS}/ holds ${placesIn(skills)}.`;
    return new PathRefusal(`Permission denied. ${what}`);
  }
  if (kind !== 'agent') return new PathRefusal(OUTSIDE);
  const open = roots.filter(({ isReadOnly }) => !isReadOnly).map(({ folder }) => folder);
  return new PathRefusal(
    `Permission denied: this path leads out of the folders of this task, which are ${open.join(', ')}.`,
  );
}

const OUTSIDE =
  'Permission denied: this path leads out of your working folder. Give one relative to it, like notes/today.md; what ' +
  'people sent here is in media/.';

/** The caller closes the handle. */
export async function openToRead(allowed: FileRoots, path: string) {
  const { root, names, shown } = await locate(allowed, path);
  const name = names.at(-1);
  if (name === undefined) throw new PathRefusal(`${shown} is a folder.`, 'no file');
  const above = names.slice(0, -1);
  const found = { root: root.folder, names: above, real: join(root.folder, ...above) };
  const isMedia = root.folder === allowed.media;
  const isSkill = allowed.skills.some(({ folder }) => isWithin(found.real, folder));
  return within(root.folder, above, async (folder) => {
    await refuseUnlessFile(folder, name, shown);
    const handle = await openFile(folder, name);
    if (handle === null) throw new PathRefusal(`${shown} is no file.`, 'no file');
    const { size: bytes } = await handle.stat();
    return { handle, bytes, folder: found, name, isMedia, isSkill };
  }).catch(refuse(shown));
}

/** A real folder, with the root through which it is reached. */
export interface FoundFolder {
  root: string;
  names: string[];
  real: string;
}

export async function findFolder(allowed: FileRoots, path: string): Promise<FoundFolder> {
  const { root, names, shown } = await locate(allowed, path);
  const found = { root: root.folder, names, real: join(root.folder, ...names) };
  return within(root.folder, names, async () => found).catch(refuse(shown));
}

/** Writes a file whole or not at all, within its quota, and only if the file still equals `expected`. */
export async function writeWithin(
  allowed: FileRoots,
  path: string,
  bytes: Uint8Array,
  signal: AbortSignal,
  expected?: Uint8Array,
): Promise<'written' | 'changed'> {
  const { root, names, shown } = await locate(allowed, path);
  if (root.isReadOnly) {
    const what = root.folder === allowed.media ? `${MEDIA}/` : shownAs(allowed, root.folder);
    throw new PathRefusal(`Permission denied: ${what} is only for reading.`);
  }
  const name = names.at(-1);
  if (name === undefined) throw new PathRefusal(`${shown} is a folder.`, 'no file');
  // Deeper files could not be counted: the folder would count as full from then on.
  if (names.length > DEEPEST) throw new PathRefusal('Nothing was written: this path is too deep.');
  await refuseOver(root, names, bytes.length);
  const write = async (folder: OpenFolder) => {
    const before = await refuseUnlessFile(folder, name, shown).catch(nullIfMissing);
    const check = async () => {
      if (expected !== undefined && !(await holds(folder, name, expected))) throw CHANGED;
      if (signal.aborted) throw new PathRefusal('Stopped: nothing was written.');
    };
    const mode = before === null ? undefined : before.mode & 0o777;
    await writeWhole(entryOf(folder, name), bytes, { mode, check });
    return 'written' as const;
  };
  return within(root.folder, names.slice(0, -1), write, madeWithin).catch((error: unknown) =>
    error === CHANGED ? 'changed' : refuse(shown)(error),
  );
}

const CHANGED = Symbol('changed');

/** Whether a file in a chat's media folder is not from a message: a copy, or one still being written. */
export function isNoMessages(name: string): boolean {
  return name.startsWith(SENT) || name.endsWith('.tmp');
}

/** Reads at most `most` bytes of an open file, even if it grows meanwhile. */
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

/** Size of a folder; counts no further than the quota. One that cannot be counted is over it. */
export async function usedBy(work: string, quota: Quota) {
  const used = { bytes: 0, entries: 0, isOver: false };
  await within(work, [], async (root) => {
    for await (const { kind, name, folder, isClosed } of entriesBelow(root)) {
      used.entries++;
      const found = kind === 'file' ? await lstat(entryOf(folder, name)).catch(() => null) : null;
      used.bytes += found?.size ?? 0;
      used.isOver = isClosed === true || used.bytes > quota.bytes || used.entries > quota.entries;
      if (used.isOver) return;
    }
  });
  return used;
}

/** Clears setuid and setgid in files changed since a time (ms): else any user could run them as the gateway's. */
export async function withoutSetId(folder: string, since: number): Promise<void> {
  await within(folder, [], async (root) => {
    for await (const entry of entriesBelow(root)) {
      const path = entryOf(entry.folder, entry.name);
      const found = entry.kind === 'file' ? await lstat(path).catch(() => null) : null;
      if (found !== null && (found.mode & SET_ID) !== 0 && found.ctimeMs >= since) await withoutSetIdAt(path);
    }
  });
}

/** Acts on this very file, even if another command replaces it by a link meanwhile. */
async function withoutSetIdAt(path: string): Promise<void> {
  const isLinux = process.platform === 'linux';
  const flags = constants.O_NOFOLLOW | (isLinux ? O_PATH : constants.O_RDONLY | constants.O_NONBLOCK);
  const handle = await open(path, flags).catch(() => null);
  if (handle === null) return;
  try {
    const found = await handle.stat();
    const mode = found.mode & 0o777;
    if (found.isFile()) await (isLinux ? chmod(`/proc/self/fd/${handle.fd}`, mode) : handle.chmod(mode));
  } catch (error) {
    // Owned by another user: not made by a command of ours.
    if (codeOf(error) !== 'EPERM') throw error;
  } finally {
    await handle.close();
  }
}

/** S_ISUID and S_ISGID (inode(7)). */
const SET_ID = 0o6000;
/** Opens a file without permission to read it (open(2)); Node has no constant for it. */
const O_PATH = 0o10000000;

async function refuseOver({ folder, quota }: Root, names: string[], more: number) {
  if (quota === null) return;
  const before = await lstat(join(folder, ...names)).catch(() => null);
  const replaced = before?.isFile() ? before.size : 0;
  // In a full folder, writes that free space are allowed.
  if (before !== null && more <= replaced) return;
  const used = await usedBy(folder, quota);
  const entries = used.entries + (before === null ? 1 : 0);
  if (!used.isOver && used.bytes - replaced + more <= quota.bytes && entries <= quota.entries) return;
  throw new PathRefusal(
    `Nothing was written: your working folder is full (at most ${sizeInWords(quota.bytes)} and ${quota.entries} ` +
      'files and folders). Make a file in it shorter first.',
  );
}

/** Before it is opened: opening a device may have side effects. */
async function refuseUnlessFile(folder: OpenFolder, name: string, shown: string) {
  const found = await lstat(entryOf(folder, name));
  if (found.isDirectory()) throw new PathRefusal(`${shown} is a folder.`, 'no file');
  if (!found.isFile()) throw new PathRefusal(`${shown} is no file.`, 'no file');
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

/** By the code of a system error; `%` is the path. */
const REFUSALS: Record<string, string> = {
  ENOENT: 'There is no %.',
  ENOTDIR: 'There is no %: something on the way to it is no folder.',
  ELOOP: 'There is no %: something on the way to it is no folder.',
  EACCES: '% cannot be opened: its rights forbid it.',
  EPERM: '% cannot be opened: its rights forbid it.',
  ENXIO: '% is no file.',
  EISDIR: '% is no file.',
  ENAMETOOLONG: 'This path is too long.',
  ENOSPC: 'Nothing was written: the disk is full.',
  EDQUOT: 'Nothing was written: the disk is full.',
};

/** Turns a system error about a path into words for a model; rethrows any other. */
function refuse(shown: string): (error: unknown) => never {
  return (error) => {
    const words = REFUSALS[codeOf(error)];
    if (words === undefined) throw error;
    const kind = words.startsWith('There is no') ? 'missing' : 'refused';
    throw new PathRefusal(
      words.replace('%', () => shown),
      kind,
    );
  };
}
