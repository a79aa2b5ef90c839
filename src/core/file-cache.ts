/**
 * Caches what was parsed from a file or folder until it changes. Step 4 of the route needs some ten of them for every
 * message, and they hardly ever change; an edit still applies to the very next reply.
 */
import { type Stats, statSync } from 'node:fs';
import { LRUCache } from 'lru-cache';

/** The capacity of one cache, by size of the files (LRU). */
const MAX_BYTES = 4 * 1024 * 1024;
/** The overhead of an entry beyond its file's text. */
const ENTRY_BYTES = 2_000;
/** The coarsest timestamps of any file system that we know (FAT: two seconds). They are whole seconds. */
const COARSE_TICK_MS = 2_000;
/** Finer ones are stamped with the kernel's own tick, ten milliseconds at most. */
const FINE_TICK_MS = 100;

type Stamp = Pick<Stats, 'mtimeMs' | 'ctimeMs' | 'size' | 'ino' | 'dev'>;

interface Entry<Value> {
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
  const entries = new LRUCache<string, Entry<Value>>({
    maxSize: MAX_BYTES,
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
