/** Opens files below a folder name by name without following links, so that no link put there meanwhile leads out. */
import { constants, existsSync } from 'node:fs';
import { type FileHandle, mkdir, open, opendir } from 'node:fs/promises';
import { join } from 'node:path';

const DESCRIPTORS = '/proc/self/fd';
const BY_DESCRIPTOR = existsSync(DESCRIPTORS);
const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants;
/** Every folder on the way stays open. */
export const DEEPEST = 40;

export interface OpenFolder {
  handle: FileHandle;
  path: string;
}

/** For calls that take a path. `name` is a single name, not `..`. */
export function entryOf(folder: OpenFolder, name: string): string {
  return join(pathTo(folder), name);
}

async function openWithin(folder: OpenFolder, name: string): Promise<OpenFolder> {
  const handle = await open(entryOf(folder, name), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  return { handle, path: join(folder.path, name) };
}

export async function madeWithin(folder: OpenFolder, name: string): Promise<OpenFolder> {
  await mkdir(entryOf(folder, name), { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
  return openWithin(folder, name);
}

/** null for anything but a regular file. Never blocks on pipes, devices or sockets. */
export async function openFile(folder: OpenFolder, name: string): Promise<FileHandle | null> {
  const handle = await open(entryOf(folder, name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if ((await handle.stat()).isFile()) return handle;
  await handle.close();
  return null;
}

/** The real folder at `names`. */
export async function within<T>(
  root: string,
  names: readonly string[],
  use: (folder: OpenFolder) => Promise<T>,
  enter: (folder: OpenFolder, name: string) => Promise<OpenFolder> = openWithin,
): Promise<T> {
  let folder = { handle: await open(root, O_RDONLY | O_DIRECTORY | O_NOFOLLOW), path: root };
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

/** `path` is relative to the start of the walk. */
export interface FolderEntry {
  kind: 'file' | 'folder' | 'other';
  name: string;
  path: string;
  /** Not entered: too deep, or unreadable. */
  isClosed?: true;
  /** Open only while the entry is being handled. */
  folder: OpenFolder;
}

/** Unordered; links are `other` and not followed. */
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
