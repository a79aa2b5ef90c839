/**
 * Changing a file that others read and edit at the same time: never half written, never over somebody else's
 * change. Changes of a file run one after the other; one that came from outside meanwhile makes ours run again.
 */
import { readFileSync, renameSync } from 'node:fs';
import { chmod, chown, mkdir, rm, stat } from 'node:fs/promises';
import { basename, dirname, resolve } from 'node:path';
import { Fault } from '../core/errors.js';
import { codeOf, isMissing, readIfThere, unavailable } from './disk.js';
import { followLinks } from './links.js';
import { type Alone, locks } from './locks.js';
import { openTemporary, removeLeftOvers } from './temporary.js';

/** What a file shall be, and a note of it elsewhere: made just before, withdrawn when it did not come to be. */
export interface Noted {
  bytes: Buffer;
  note(): Promise<void>;
  withdraw(): Promise<void>;
}

/** Gets the file as it is (null: not there) and returns what it shall be (null: as it is). May run repeatedly. */
type Change = (current: Buffer | null) => Buffer | Noted | null;

/**
 * Whether the file was replaced. Throws, and leaves the file as it is, when the signal aborts before that. A crash
 * leaves at most a note of something that did not come to be.
 */
export type UpdateFile = (path: string, change: Change, signal?: AbortSignal) => Promise<boolean>;

const MAX_TRIES = 50;

/** Whoever writes the same files shares an updater, or at least its locks: one a path, by `resolve`. */
export function fileUpdater(alone: Alone = locks()): UpdateFile {
  return (path, change, signal) => alone(resolve(path), () => update(path, change, signal));

  async function update(path: string, change: Change, signal?: AbortSignal): Promise<boolean> {
    const target = await followLinks(path);
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const current = await readIfThere(target);
      const next = change(current);
      if (next === null) return false;
      const noted = Buffer.isBuffer(next) ? { bytes: next, note: nothing, withdraw: nothing } : next;
      if (current !== null && noted.bytes.equals(current)) return false;
      if (await replace(target, current, noted, signal)) return true;
    }
    throw new Fault('memory_unavailable', `Cannot write ${path}: something else keeps changing it`);
  }
}

async function nothing(): Promise<void> {}

/** False when the file is no longer what was read; then nothing was changed. */
async function replace(
  target: string,
  read: Buffer | null,
  next: Noted,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const temporary = await prepare(target, read, next.bytes);
  if (temporary === null) return false;
  let renamed = false;
  try {
    stopIfAborted(target, signal);
    await next.note();
    try {
      stopIfAborted(target, signal);
      renamed = renameIfStill(temporary, target, read);
    } finally {
      if (!renamed) await next.withdraw();
    }
  } finally {
    // Once renamed, the name may be another writer's already.
    if (!renamed) await rm(temporary, { force: true });
  }
  return renamed;
}

function stopIfAborted(target: string, signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new Fault('memory_unavailable', `${target} was not written: the turn was ended`);
}

/** The new file beside the old one, on the disk; null when the folder or the file went away meanwhile. */
async function prepare(target: string, read: Buffer | null, bytes: Buffer): Promise<string | null> {
  try {
    await mkdir(dirname(target), { recursive: true });
    await removeLeftOvers(dirname(target), (name) => name === basename(target));
    const { path, file } = await openTemporary(target);
    try {
      try {
        await file.writeFile(bytes);
        await file.sync();
      } finally {
        await file.close();
      }
      if (read !== null) await takeOver(target, path);
      return path;
    } catch (error) {
      await rm(path, { force: true });
      throw error;
    }
  } catch (error) {
    if (isMissing(error)) return null;
    throw unavailable('write', target, error);
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

/** Check and rename in one go, without giving any other writer of this process a turn in between. */
function renameIfStill(temporary: string, target: string, read: Buffer | null): boolean {
  try {
    const still = sameStill(target, read);
    if (still) renameSync(temporary, target);
    return still;
  } catch (error) {
    // The folder went away meanwhile.
    if (isMissing(error)) return false;
    throw unavailable('write', target, error);
  }
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
