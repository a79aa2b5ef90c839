/**
 * Writes a file whole: readers, also after a crash, find the old one or the new one. The new one is written beside it
 * (`.MEMORY.md.<process>-<number>.tmp`), synced and renamed. A crash may leave such a temporary file with its content.
 */
import { type FileHandle, lstat, open, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { codeOf, isMissing, namesIn, unavailable } from './file-access.js';

export type Content = string | Uint8Array | ((file: FileHandle) => Promise<void>);

/** What people said is for the owner's eyes. */
export const PRIVATE = 0o600;

/**
 * Replaces a link instead of following it; for a folder that may be replaced by a link meanwhile, give a path below an
 * open one (`entryOf`). `mode`: otherwise only the owner may read it. `check` may throw, after which nothing has changed.
 */
export async function writeWhole(
  path: string,
  content: Content,
  { mode, check }: { mode?: number | undefined; check?: () => Promise<void> } = {},
): Promise<void> {
  const temporary = await openTemporary(path);
  try {
    try {
      if (typeof content === 'function') await content(temporary.file);
      else await temporary.file.writeFile(content);
      if (mode !== undefined) await temporary.file.chmod(mode);
      await temporary.file.sync();
    } finally {
      await temporary.file.close();
    }
    await check?.();
    await rename(temporary.path, path);
  } catch (error) {
    await rm(temporary.path, { force: true });
    throw error;
  }
  await syncFolder(dirname(path));
}

/** So that a power cut does not take a new name away. */
export async function syncFolder(folder: string): Promise<void> {
  try {
    const handle = await open(folder, 'r');
    await handle.sync().finally(() => handle.close());
  } catch (error) {
    // Some file systems cannot sync folders, or forbid it; nothing more can be done there.
    if (!['EINVAL', 'EPERM', 'EACCES', 'EISDIR', 'ENOTSUP'].includes(codeOf(error))) throw error;
  }
}

export interface Temporary {
  path: string;
  file: FileHandle;
}

/** Creates a new file, exclusive to this writer, in the folder of the file it will become. */
export async function openTemporary(target: string): Promise<Temporary> {
  const name = Buffer.from(basename(target)).subarray(0, LONGEST_NAME).toString();
  for (let number = 1; ; number++) {
    const path = join(dirname(target), `.${name}.${process.pid}-${number}.tmp`);
    try {
      return { path, file: await open(path, 'wx+', PRIVATE) };
    } catch (error) {
      // It belongs to another writer, or a crash left it.
      if (codeOf(error) !== 'EEXIST') throw error;
    }
  }
}

/** Bytes of the target's name in that of the temporary file: file systems allow 255 in all. */
const LONGEST_NAME = 220;

/** Removes temporary files that earlier processes left in a folder, of the files for which `isMeant` is true. */
export async function removeLeftOvers(folder: string, isMeant: (name: string) => boolean): Promise<void> {
  for (const name of await namesIn(folder)) {
    const target = /^\.(.+)\.\d+-\d+\.tmp$/.exec(name)?.[1];
    if (target === undefined || !isMeant(target)) continue;
    const path = join(folder, name);
    try {
      if ((await lstat(path)).mtimeMs < performance.timeOrigin) await rm(path, { force: true });
    } catch (error) {
      if (!isMissing(error)) throw unavailable('write', path, error);
    }
  }
}
