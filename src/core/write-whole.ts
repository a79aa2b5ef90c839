/** Writes files whole, beside the old one (`.MEMORY.md.<process>-<number>.tmp`), synced and renamed. */
import { readFileSync, renameSync } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, readlink, realpath, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { type Exclusive, locks } from './concurrency.js';
import { Fault } from './errors.js';
import {
  codeOf,
  isMissing,
  namesIn,
  nullIfMissing,
  readIfThere,
  statIfThere,
  unavailable,
} from './file-access.js';

type Content = string | Uint8Array | ((file: FileHandle) => Promise<void>);

/** Conversations are private to the owner of the process. */
export const PRIVATE = 0o600;

/** Replaces a link instead of following it. `mode` defaults to owner-only. If `check` throws, nothing has changed. */
export async function writeWhole(
  path: string,
  content: Content,
  { mode, check }: { mode?: number | undefined; check?: () => Promise<void> } = {},
): Promise<void> {
  const temporary = await writtenBeside(path, async (file) => {
    if (typeof content === 'function') await content(file);
    else await file.writeFile(content);
    if (mode !== undefined) await file.chmod(mode);
  });
  try {
    await check?.();
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncFolder(dirname(path));
}

/** A temporary file with the content, synced. Removed if that fails. */
async function writtenBeside(target: string, fill: (file: FileHandle) => Promise<void>): Promise<string> {
  const { path, file } = await openTemporary(target);
  try {
    await fill(file)
      .then(() => file.sync())
      .finally(() => file.close());
    return path;
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  }
}

/** So that the new name survives a power cut. */
export async function syncFolder(folder: string): Promise<void> {
  try {
    const handle = await open(folder, 'r');
    await handle.sync().finally(() => handle.close());
  } catch (error) {
    // Some file systems cannot sync folders, or forbid it; ignore that.
    if (!['EINVAL', 'EPERM', 'EACCES', 'EISDIR', 'ENOTSUP'].includes(codeOf(error))) throw error;
  }
}

interface Temporary {
  path: string;
  file: FileHandle;
}

export async function openTemporary(target: string): Promise<Temporary> {
  const name = Buffer.from(basename(target)).subarray(0, LONGEST_NAME).toString();
  for (let number = 1; ; number++) {
    const path = join(dirname(target), `.${name}.${process.pid}-${number}.tmp`);
    try {
      return { path, file: await open(path, 'wx+', PRIVATE) };
    } catch (error) {
      // Taken by another writer, or left by a crash.
      if (codeOf(error) !== 'EEXIST') throw error;
    }
  }
}

/** Maximum bytes of the target's name within the temporary name: file systems allow 255 in total. */
const LONGEST_NAME = 220;

/** Of earlier processes, for targets that `isMeant` accepts. */
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

// Changes a file that others edit at the same time: if somebody edited it meanwhile, ours is computed again.

/** Its record is stored first, and withdrawn if the file was not replaced. */
export interface RecordedChange {
  bytes: Buffer;
  record(): Promise<void>;
  withdraw(): Promise<void>;
}

/** Gets null for a missing file, and returns null to leave it as it is. May run several times. */
type Change = (current: Buffer | null) => Buffer | RecordedChange | null;

/** Returns whether the file was replaced. If the signal aborts before that, throws and changes nothing. */
export type UpdateFile = (path: string, change: Change, signal?: AbortSignal) => Promise<boolean>;

const MAX_TRIES = 50;
const MAX_LINKS = 40;

/** Writers of the same files must share an updater, or its locks (one per resolved path). */
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
      // After the rename, the temporary name may belong to another writer.
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

/** null if the folder or the old file disappeared. */
async function writeBeside(target: string, bytes: Buffer, replaces: boolean): Promise<string | null> {
  try {
    await mkdir(dirname(target), { recursive: true, mode: 0o700 });
    await removeLeftOvers(dirname(target), (name) => name === basename(target));
    return await writtenBeside(target, async (file) => {
      await file.writeFile(bytes);
      if (replaces) await takeOwnerAndMode(target, file);
    });
  } catch (error) {
    if (isMissing(error)) return null;
    throw unavailable('write', target, error);
  }
}

/** The owner only where permitted. */
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

/** Synchronous, so that no other writer of this process comes between comparison and rename. */
function renameIfUnchanged(temporary: string, target: string, read: Buffer | null): boolean {
  try {
    const now = statIfThere(target) && readFileSync(target);
    const isUnchanged = now === null || read === null ? now === read : now.equals(read);
    if (isUnchanged) renameSync(temporary, target);
    return isUnchanged;
  } catch (error) {
    // The file or its folder disappeared.
    if (isMissing(error)) return false;
    throw unavailable('write', target, error);
  }
}

/** A dangling link is written at its target. */
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
