/** Caches parsed files and folders until they change; an edit applies to the next reply. */
import { type Stats, statSync } from 'node:fs';
import { LRUCache } from 'lru-cache';
import { describe } from './errors.js';
import type { Log } from './log.js';

/** On failure logs a warning and returns `otherwise`. */
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

/** In bytes of files. */
const CACHE_BYTES = 4 * 1024 * 1024;

/** Of an entry, besides its file. */
const ENTRY_BYTES = 2_000;

/** On FAT, timestamps are whole seconds, and every second one. */
const COARSE_TICK_MS = 2_000;

/** The kernel's tick is at most ten ms. */
const FINE_TICK_MS = 100;

type Stamp = Pick<Stats, 'mtimeMs' | 'ctimeMs' | 'size' | 'ino' | 'dev'>;

interface CachedFile<Value> {
  stamp: Stamp;
  value: Value;
}

/**
 * Calls `load` only if the path has changed, and returns `missing` if nothing is there. Follows links. A file changed
 * less than a clock tick ago is not cached (as in git's index). `now`: the clock that stamps files.
 */
export function readUnlessUnchanged<Value>(
  missing: Value,
  load: (path: string) => Promise<Value>,
  now: () => number = Date.now,
  /** Of all files that are kept. */
  cacheBytes = CACHE_BYTES,
): (path: string) => Promise<Value> {
  const entries = new LRUCache<string, CachedFile<Value>>({
    maxSize: cacheBytes,
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

/** Changes from `now` on get a different timestamp. */
function isPast(timestamp: number, now: number): boolean {
  return timestamp < now - (timestamp % 1_000 === 0 ? COARSE_TICK_MS : FINE_TICK_MS);
}

/** Synchronous: one or two microseconds, against thirty through the thread pool. */
function look(path: string): Stats | 'missing' | 'unknown' {
  try {
    return statSync(path, { throwIfNoEntry: false }) ?? 'missing';
  } catch {
    // A link loop, a file used as a folder, or no access: `load` reports it.
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
