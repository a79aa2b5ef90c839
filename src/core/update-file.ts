/**
 * Changes a file that others read and edit at the same time: atomically, and without overwriting anybody's change.
 * Changes of a file run one after the other; if it was edited from outside meanwhile, ours is computed again.
 */
import { readFileSync, renameSync } from 'node:fs';
import { type FileHandle, lstat, mkdir, readlink, realpath, rm, stat } from 'node:fs/promises';
import { basename, dirname, resolve } from 'node:path';
import { Fault } from './errors.js';
import { codeOf, isMissing, readIfThere, unavailable } from './file-access.js';
import { type Exclusive, locks } from './mutex.js';
import { openTemporary, removeLeftOvers } from './write-whole.js';

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
