/**
 * Reads files that anybody may have put there: a directory, a pipe or a link loop causes a Fault instead of a hang. And a
 * cache of what was parsed from them, until they change.
 */
import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  type Stats,
  statSync,
} from 'node:fs';
import { readFile } from 'node:fs/promises';
import { setImmediate as nextPass } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { describe, Fault } from './errors.js';
import type { Log } from './log.js';

/** A larger file is no plausible memory file, and reading it for each turn would block everything else. */
const MAX_BYTES = 64 * 1024 * 1024;
/** For a small file, the round trip through the thread pool costs several times the read itself. */
const SMALL_BYTES = 256 * 1024;

const HINTS: Record<string, string> = {
  ENOSPC: 'the disk is full; free some space',
  EDQUOT: 'the disk quota is used up; free some space',
  EFBIG: 'the file would exceed the size limit of this process',
  EISDIR: 'a directory stands where a file is expected; move it away',
  ENOTDIR: 'a file stands where a folder is expected; move it away',
  ELOOP: 'its links lead in a circle; remove them',
  EACCES: 'access is denied; give the user that runs the gateway the right to it',
  EPERM: 'that is not permitted; give the user that runs the gateway the right to it',
  EROFS: 'the file system is read-only',
};

/**
 * The bytes of a text file, or only its first ones; null if it does not exist. Throws Fault `memory_unavailable` for
 * other errors.
 */
export async function readIfThere(path: string, first?: number): Promise<Buffer | null> {
  try {
    // Without O_NONBLOCK, opening a pipe would wait for a writer forever.
    const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const found = fstatSync(file);
      if (found.isDirectory()) throw unavailable('read', path, { code: 'EISDIR' });
      if (!found.isFile()) throw unusable(path, 'it is a pipe or a device; move it away');
      if (first !== undefined) {
        const bytes = Buffer.alloc(Math.min(first, found.size));
        return bytes.subarray(0, readSync(file, bytes, 0, bytes.length, 0));
      }
      if (found.size > MAX_BYTES) throw unusable(path, 'it is larger than 64 MB; shorten it');
      const bytes = found.size <= SMALL_BYTES ? readFileSync(file) : await readFile(path);
      if (isUtf16(bytes)) throw unusable(path, 'it is UTF-16; save it as UTF-8');
      return bytes;
    } finally {
      closeSync(file);
    }
  } catch (error) {
    // A path below a file does not exist either; writing there reports what is wrong.
    if (isMissing(error) || codeOf(error) === 'ENOTDIR') return null;
    throw unavailable('read', path, error);
  }
}

/** The result of `read` for a path; if it fails, logs a warning and returns `otherwise`. */
export async function readOr<Value>(
  otherwise: Value,
  path: string,
  read: (path: string) => Promise<Value>,
  log: Log,
  message: string,
): Promise<Value> {
  try {
    return await read(path);
  } catch (error) {
    log.warn({ path, error: describe(error) }, message);
    return otherwise;
  }
}

/** The names in a folder; empty if it does not exist. */
export async function namesIn(folder: string): Promise<string[]> {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (isMissing(error)) return [];
    throw unavailable('read', folder, error);
  }
}

/** The stats of what a path leads to; null if nothing is there. */
export function statIfThere(path: string): Stats | null {
  try {
    return statSync(path, { throwIfNoEntry: false }) ?? null;
  } catch (error) {
    throw unavailable('read', path, error);
  }
}

/** Returns `unclear` if a link loop or missing access prevents an answer. */
export function isFolder(path: string, unclear: boolean): boolean {
  try {
    return statIfThere(path)?.isDirectory() ?? false;
  } catch {
    return unclear;
  }
}

/** Yields to the event loop after every `atOnce` items. */
export async function* unhurried<Item>(items: Iterable<Item>, atOnce: number): AsyncGenerator<Item> {
  let n = 0;
  for (const item of items) {
    yield item;
    if (++n % atOnce === 0) await nextPass();
  }
}

export function unavailable(action: 'read' | 'write', path: string, error: unknown): Fault {
  if (error instanceof Fault) return error;
  const hint = HINTS[codeOf(error)];
  return new Fault(
    'memory_unavailable',
    `Cannot ${action} ${path}${hint ? `: ${hint}` : ''}`,
    hint ? undefined : error,
  );
}

function unusable(path: string, reason: string): Fault {
  return new Fault('memory_unavailable', `Cannot read ${path}: ${reason}`);
}

export function isMissing(error: unknown): boolean {
  return codeOf(error) === 'ENOENT';
}

export function codeOf(error: unknown): string {
  return typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : '';
}

function isUtf16(bytes: Buffer): boolean {
  return (bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff);
}

// Caches what was parsed from a file or folder until it changes. Step 4 of the route needs some ten of them for every
// message, and they hardly ever change; an edit still applies to the very next reply.

/** The capacity of one cache, by size of the files (LRU). */
const CACHE_BYTES = 4 * 1024 * 1024;
/** The overhead of an entry beyond its file's text. */
const ENTRY_BYTES = 2_000;
/** The coarsest timestamps of any file system that we know (FAT: two seconds). They are whole seconds. */
const COARSE_TICK_MS = 2_000;
/** Finer ones are stamped with the kernel's own tick, ten milliseconds at most. */
const FINE_TICK_MS = 100;

type Stamp = Pick<Stats, 'mtimeMs' | 'ctimeMs' | 'size' | 'ino' | 'dev'>;

interface CachedFile<Value> {
  stamp: Stamp;
  value: Value;
}

/**
 * Returns a reader that calls `load` only for a path that has changed since the last call, and returns `missing` if
 * nothing is there. Follows links. Errors of `load` are thrown and not cached.
 *
 * A change within the same clock tick as our read does not alter the file's timestamps. So nothing is cached for a file
 * that was changed less than a tick ago, as git does with its index. After that, every change shows in the timestamps,
 * whatever their precision.
 *
 * `now` must be the clock that stamps files, which may differ from the gateway's clock.
 */
export function readUnlessUnchanged<Value>(
  missing: Value,
  load: (path: string) => Promise<Value>,
  now: () => number = Date.now,
): (path: string) => Promise<Value> {
  const entries = new LRUCache<string, CachedFile<Value>>({
    maxSize: CACHE_BYTES,
    sizeCalculation: ({ stamp }) => stamp.size + ENTRY_BYTES,
  });

  return async (path) => {
    const before = now();
    const found = look(path);
    if (found === 'missing') {
      entries.delete(path);
      return missing;
    }
    const entry = entries.get(path);
    if (entry !== undefined && found !== 'unknown' && isSame(entry.stamp, found)) return entry.value;
    entries.delete(path);
    const value = await load(path);
    if (found !== 'unknown' && isPast(Math.max(found.mtimeMs, found.ctimeMs), before)) {
      const { mtimeMs, ctimeMs, size, ino, dev } = found;
      entries.set(path, { stamp: { mtimeMs, ctimeMs, size, ino, dev }, value });
    }
    return value;
  };
}

/** Whether a change at `now` or later has another timestamp. */
function isPast(timestamp: number, now: number): boolean {
  return timestamp < now - (timestamp % 1_000 === 0 ? COARSE_TICK_MS : FINE_TICK_MS);
}

/**
 * Synchronous, because the kernel usually has the answer cached: that takes a microsecond or two, against thirty
 * through the thread pool. On a slow disk, the event loop waits for the lookup of one inode.
 */
function look(path: string): Stats | 'missing' | 'unknown' {
  try {
    return statSync(path, { throwIfNoEntry: false }) ?? 'missing';
  } catch {
    // A link loop, a file used as a folder, no access: `load` reports what it means.
    return 'unknown';
  }
}

function isSame(one: Stamp, other: Stamp): boolean {
  return (
    one.mtimeMs === other.mtimeMs &&
    one.ctimeMs === other.ctimeMs &&
    one.size === other.size &&
    one.ino === other.ino &&
    one.dev === other.dev
  );
}
