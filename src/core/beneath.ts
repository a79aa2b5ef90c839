/**
 * Opens files below a folder, one name after the other, and follows no link on the way: a link that somebody puts in the
 * place of a file, between a look and its use, leads nobody out. Where the system shows open files (`/proc`) a folder is
 * entered by its descriptor, elsewhere by its path. And how names are written on the disk.
 */
import { constants, existsSync, readdirSync } from 'node:fs';
import { type FileHandle, mkdir, open, opendir, readdir } from 'node:fs/promises';
import { join } from 'node:path';

const DESCRIPTORS = '/proc/self/fd';
const BY_DESCRIPTOR = existsSync(DESCRIPTORS);
const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants;
/** Deeper folders are not entered: each one on the way is open meanwhile. */
export const DEEPEST = 40;

export interface OpenFolder {
  handle: FileHandle;
  path: string;
}

async function openFolder(path: string): Promise<OpenFolder> {
  return { handle: await open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW), path };
}

/** The way to an entry of an open folder, for calls that take a path. `name` is one name, not `..`. */
export function entryOf({ handle, path }: OpenFolder, name: string): string {
  return join(pathTo({ handle, path }), name);
}

async function openWithin(folder: OpenFolder, name: string): Promise<OpenFolder> {
  const handle = await open(entryOf(folder, name), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  return { handle, path: join(folder.path, name) };
}

/** As `openWithin`, with a folder made that is not there. */
export async function madeWithin(folder: OpenFolder, name: string): Promise<OpenFolder> {
  await mkdir(entryOf(folder, name), { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
  return openWithin(folder, name);
}

/** Opens a file for reading; null for what is none: pipes, devices and sockets keep nobody waiting. */
export async function openFile(folder: OpenFolder, name: string): Promise<FileHandle | null> {
  const handle = await open(entryOf(folder, name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if ((await handle.stat()).isFile()) return handle;
  await handle.close();
  return null;
}

/** Opens the folder that `names` lead to, all of them real folders, and lets `use` work in it. `enter` goes one name on. */
export async function within<T>(
  root: string,
  names: readonly string[],
  use: (folder: OpenFolder) => Promise<T>,
  enter: (folder: OpenFolder, name: string) => Promise<OpenFolder> = openWithin,
): Promise<T> {
  let folder = await openFolder(root);
  try {
    for (const name of names) {
      const next = await enter(folder, name);
      await folder.handle.close();
      folder = next;
    }
    return await use(folder);
  } finally {
    await folder.handle.close();
  }
}

/** Something in a folder. `path` is relative to where the walk began. */
export interface FolderEntry {
  kind: 'file' | 'folder' | 'other';
  name: string;
  path: string;
  /** A folder that is not looked into: it is too deep, or cannot be read. */
  isClosed?: true;
  /** Open as long as the entry is looked at. */
  folder: OpenFolder;
}

/**
 * All that lies below an open folder, in no order; links are `other` and not followed. `enter` says which folders are
 * looked into.
 */
export async function* entriesBelow(
  folder: OpenFolder,
  enter: (entry: FolderEntry) => boolean = () => true,
  before: readonly string[] = [],
): AsyncGenerator<FolderEntry> {
  for await (const found of await opendir(pathTo(folder))) {
    const { name } = found;
    const names = [...before, name];
    const kind = found.isFile() ? 'file' : found.isDirectory() ? 'folder' : 'other';
    const entry: FolderEntry = { kind, name, path: names.join('/'), folder };
    const isInner = kind === 'folder' && enter(entry);
    const inner = isInner && names.length < DEEPEST ? await openWithin(folder, name).catch(() => null) : null;
    try {
      yield isInner && inner === null ? { ...entry, isClosed: true } : entry;
      if (inner !== null) yield* entriesBelow(inner, enter, names);
    } finally {
      await inner?.handle.close();
    }
  }
}

function pathTo({ handle, path }: OpenFolder): string {
  return BY_DESCRIPTOR ? join(DESCRIPTORS, String(handle.fd)) : path;
}

// File names in two Unicode forms. A Mac writes `é` as two characters (NFD), and an archive or a copy brings such names to
// disks that take them for others than those in one (NFC), which people and models type. Here they are the same name.
// Where a folder holds both, the very name that is asked for counts.

export function composed(name: string): string {
  return isAscii(name) ? name : name.normalize('NFC');
}

/** Composed, each name once: of two that are the same it is the one that is looked up. */
export function composedNames(names: readonly string[]): string[] {
  return [...new Set(names.map(composed))];
}

/**
 * How a name is written in a folder; the name itself where there is none like it. Synchronous, because it is asked for
 * every message, and costs nothing for the names that most have.
 */
export function nameOnDisk(folder: string, name: string): string {
  if (isAscii(name) || existsSync(join(folder, name))) return name;
  try {
    return meant(name, readdirSync(folder)) ?? name;
  } catch {
    // Nothing is there, or not to be read: whatever is done with the name says so.
    return name;
  }
}

/** The same for all the names of a path below a folder. */
export async function pathOnDisk(folder: string, names: readonly string[]): Promise<string[]> {
  const written: string[] = [];
  for (const name of names) {
    const at = join(folder, ...written);
    const isAsWritten = isAscii(name) || existsSync(join(at, name));
    const there = isAsWritten ? [] : await readdir(at).catch(() => []);
    written.push(meant(name, there) ?? name);
  }
  return written;
}

function meant(name: string, there: readonly string[]): string | null {
  if (there.includes(name)) return name;
  const wanted = composed(name);
  return there.filter((each) => composed(each) === wanted).sort()[0] ?? null;
}

/** Names of a folder that are the same, in groups of two and more. */
export function sameNames(names: readonly string[]): string[][] {
  const groups = new Map<string, string[]>();
  for (const name of names) groups.set(composed(name), [...(groups.get(composed(name)) ?? []), name]);
  return [...groups.values()].filter(({ length }) => length > 1);
}

function isAscii(name: string): boolean {
  return /^[\x20-\x7e]*$/.test(name);
}
