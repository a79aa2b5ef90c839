/**
 * Changing a file that others read and edit at the same time: never half written, never over somebody else's
 * change. Changes of a file run one after the other; one that came from outside meanwhile makes ours run again.
 */
import { readFileSync, renameSync } from 'node:fs';
import {
  chmod,
  chown,
  type FileHandle,
  lstat,
  mkdir,
  open,
  readlink,
  realpath,
  rm,
  stat,
} from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { Fault } from '../core/errors.js';
import { codeOf, isMissing, readIfThere, unavailable } from './disk.js';

/** Gets the file as it is (null: not there) and returns what it shall be (null: as it is). May run repeatedly. */
type Change = (current: Buffer | null) => Buffer | null;

/** Throws, and leaves the file as it is, when the signal aborts before it is replaced. */
export type UpdateFile = (path: string, change: Change, signal?: AbortSignal) => Promise<void>;

const MAX_TRIES = 50;
const MAX_LINKS = 40;

/** The locks live as long as the returned function: whoever writes the same files shares one. */
export function fileUpdater(): UpdateFile {
  const last = new Map<string, Promise<void>>();
  let temporaryFiles = 0;

  return async (path, change, signal) => {
    const lock = resolve(path);
    // The failure of the one before is its caller's to hear.
    const mine = (last.get(lock) ?? Promise.resolve())
      .catch(() => {})
      .then(() => update(path, change, signal));
    last.set(lock, mine);
    try {
      await mine;
    } finally {
      if (last.get(lock) === mine) last.delete(lock);
    }
  };

  async function update(path: string, change: Change, signal?: AbortSignal): Promise<void> {
    const target = await followLinks(path);
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const current = await readIfThere(target);
      const next = change(current);
      if (next === null || (current !== null && next.equals(current))) return;
      temporaryFiles++;
      if (await replace(target, current, next, `${process.pid}-${temporaryFiles}`, signal)) return;
    }
    throw new Fault('memory_unavailable', `Cannot write ${path}: something else keeps changing it`);
  }
}

/** False when the file is no longer what was read; then nothing was changed. */
async function replace(
  target: string,
  read: Buffer | null,
  next: Buffer,
  mark: string,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const temporary = join(dirname(target), `.${basename(target)}.${mark}.tmp`);
  let renamed = false;
  try {
    await mkdir(dirname(target), { recursive: true });
    if (!(await writeDurably(temporary, next))) return false;
    try {
      if (read !== null) await takeOver(target, temporary);
      if (signal?.aborted)
        throw new Fault('memory_unavailable', `${target} was not written: the turn was ended`);
      // Check and rename in one go, without giving any other writer of this process a turn in between.
      renamed = sameStill(target, read);
      if (renamed) renameSync(temporary, target);
    } finally {
      await rm(temporary, { force: true });
    }
    return renamed;
  } catch (error) {
    // The folder or the file went away meanwhile: look again.
    if (isMissing(error)) return false;
    throw error instanceof Fault ? error : unavailable('write', target, error);
  }
}

/** False when there is such a file: another writer's, or what a crash left; the next name is tried then. */
async function writeDurably(path: string, bytes: Buffer): Promise<boolean> {
  let file: FileHandle;
  try {
    file = await open(path, 'wx');
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw error;
  }
  try {
    await file.writeFile(bytes);
    await file.sync();
    return true;
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  } finally {
    await file.close();
  }
}

/** A rename makes the file ours; its mode and, where we may, its owner stay what the operator chose. */
async function takeOver(target: string, temporary: string): Promise<void> {
  const was = await stat(target);
  const is = await stat(temporary);
  if (was.uid !== is.uid || was.gid !== is.gid) {
    await chown(temporary, was.uid, was.gid).catch((error: unknown) => {
      if (codeOf(error) !== 'EPERM') throw error;
    });
  }
  await chmod(temporary, was.mode & 0o7777);
}

function sameStill(target: string, read: Buffer | null): boolean {
  try {
    const now = readFileSync(target);
    return read !== null && now.equals(read);
  } catch (error) {
    if (!isMissing(error)) throw error;
    return read === null;
  }
}

/** Where a path leads, also when nothing is there yet: a link to a missing file is written at its target. */
async function followLinks(path: string): Promise<string> {
  let at = resolve(path);
  try {
    for (let links = 0; links < MAX_LINKS; links++) {
      try {
        return await realpath(at);
      } catch (error) {
        if (!isMissing(error)) throw error;
      }
      const next = await linkTarget(at);
      if (next === null) return at;
      at = next;
    }
  } catch (error) {
    throw unavailable('write', path, error);
  }
  throw unavailable('write', path, { code: 'ELOOP' });
}

async function linkTarget(path: string): Promise<string | null> {
  try {
    const found = await lstat(path);
    return found.isSymbolicLink() ? resolve(dirname(path), await readlink(path)) : null;
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}
