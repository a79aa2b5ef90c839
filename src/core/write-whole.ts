/**
 * Writes a file whole: readers, also after a crash, find the old one or the new one. The new one is written beside it
 * (`.MEMORY.md.<process>-<number>.tmp`), synced and renamed. A crash may leave such a temporary file with its content.
 */

import { readFileSync, renameSync } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, readlink, realpath, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { type Exclusive, locks } from './concurrency.js';
import { Fault } from './errors.js';
import { codeOf, isMissing, namesIn, readIfThere, unavailable } from './file-access.js';

type Content = string | Uint8Array | ((file: FileHandle) => Promise<void>);

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

// Changes a file that others read and edit at the same time: atomically, and without overwriting anybody's change.
// Changes of a file run one after the other; if it was edited from outside meanwhile, ours is computed again.

/** A file's new content and a record of the change: stored just before, withdrawn if the file was not replaced. */
export interface RecordedChange {
  bytes: Buffer;
  record(): Promise<void>;
  withdraw(): Promise<void>;
}

/** Gets the current file (null: missing) and returns the new content (null: unchanged). May run repeatedly. */
type Change = (current: Buffer | null) => Buffer | RecordedChange | null;

/**
 * Returns whether the file was replaced. If the signal aborts before that, throws and leaves the file unchanged. A
 * crash leaves at most a record of a change that was not made.
 */
export type UpdateFile = (path: string, change: Change, signal?: AbortSignal) => Promise<boolean>;

const MAX_TRIES = 50;
const MAX_LINKS = 40;

/** Writers of the same files must share an updater, or at least its locks: one per path, by `resolve`. */
export function fileUpdater(exclusive: Exclusive = locks()): UpdateFile {
  return (path, change, signal) => exclusive(resolve(path), () => update(path, change, signal));
}

async function update(path: string, change: Change, signal?: AbortSignal): Promise<boolean> {
  const target = await followLinks(path);
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const current = await readIfThere(target);
    const changed = change(current);
    if (changed === null) return false;
    const [bytes, recorded] = Buffer.isBuffer(changed) ? [changed, null] : [changed.bytes, changed];
    if (current?.equals(bytes)) return false;
    const temporary = await writeBeside(target, bytes, current !== null);
    if (temporary === null) continue;
    let renamed = false;
    try {
      stopIfAborted(target, signal);
      await recorded?.record();
      try {
        stopIfAborted(target, signal);
        renamed = renameIfUnchanged(temporary, target, current);
      } finally {
        if (!renamed) await recorded?.withdraw();
      }
    } finally {
      // After the rename, the temporary name may already belong to another writer.
      if (!renamed) await rm(temporary, { force: true });
    }
    if (renamed) return true;
  }
  throw new Fault('memory_unavailable', `Cannot write ${path}: something else keeps changing it`);
}

function stopIfAborted(target: string, signal: AbortSignal | undefined): void {
  if (signal?.aborted)
    throw new Fault('memory_unavailable', `${target} was not written: the turn was aborted`);
}

/** Writes the new file beside the old one, synced; null if the folder or the old file disappeared meanwhile. */
async function writeBeside(target: string, bytes: Buffer, replaces: boolean): Promise<string | null> {
  try {
    await mkdir(dirname(target), { recursive: true, mode: 0o700 });
    await removeLeftOvers(dirname(target), (name) => name === basename(target));
    const { path, file } = await openTemporary(target);
    try {
      await file.writeFile(bytes);
      if (replaces) await takeOwnerAndMode(target, file);
      await file.sync();
      await file.close();
      return path;
    } catch (error) {
      await file.close();
      await rm(path, { force: true });
      throw error;
    }
  } catch (error) {
    if (isMissing(error)) return null;
    throw unavailable('write', target, error);
  }
}

/** The rename makes us the owner; mode and, where permitted, owner are copied from the old file. */
async function takeOwnerAndMode(target: string, temporary: FileHandle): Promise<void> {
  const was = await stat(target);
  const is = await temporary.stat();
  if (was.uid !== is.uid || was.gid !== is.gid) {
    await temporary.chown(was.uid, was.gid).catch((error: unknown) => {
      if (codeOf(error) !== 'EPERM') throw error;
    });
  }
  await temporary.chmod(was.mode & 0o7777);
}

/** Compares and renames synchronously, so that no other writer of this process comes in between. */
function renameIfUnchanged(temporary: string, target: string, read: Buffer | null): boolean {
  try {
    if (!isUnchanged(target, read)) return false;
    renameSync(temporary, target);
    return true;
  } catch (error) {
    // The folder disappeared meanwhile.
    if (isMissing(error)) return false;
    throw unavailable('write', target, error);
  }
}

function isUnchanged(target: string, read: Buffer | null): boolean {
  try {
    const now = readFileSync(target);
    return read !== null && now.equals(read);
  } catch (error) {
    if (!isMissing(error)) throw error;
    return read === null;
  }
}

/** The final target of a path, even if it does not exist: a link to a missing file is written at its target. */
export async function followLinks(path: string): Promise<string> {
  let at = resolve(path);
  try {
    for (let links = 0; links < MAX_LINKS; links++) {
      const found = await realpath(at).catch(nullIfMissing);
      if (found !== null) return found;
      const isLink = (await lstat(at).catch(nullIfMissing))?.isSymbolicLink() ?? false;
      if (!isLink) return at;
      at = resolve(dirname(at), await readlink(at));
    }
  } catch (error) {
    throw unavailable('write', path, error);
  }
  throw unavailable('write', path, { code: 'ELOOP' });
}

function nullIfMissing(error: unknown): null {
  if (isMissing(error)) return null;
  throw error;
}
