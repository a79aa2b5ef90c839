/**
 * What was made of a file or folder, kept until it changes. Step 4 of the route looks at some ten of them for every
 * message, and hardly one has changed since the message before; an edit is still in the very next reply.
 */
import { type Stats, statSync } from 'node:fs';

/** How much one cache holds, counted by the size of the files: the least recently used go first. */
const MAX_BYTES = 4 * 1024 * 1024;
/** What an entry takes beside the text of its file. */
const ENTRY_BYTES = 2_000;
/** No file system that we know of has a clock with longer ticks (FAT's are of two seconds). */
const TICK_MS = 2_000;

type Stamp = Pick<Stats, 'mtimeMs' | 'ctimeMs' | 'size' | 'ino' | 'dev'>;

interface Entry<Value> {
  stamp: Stamp;
  bytes: number;
  value: Value;
}

/**
 * A reader that calls `load` only for what has changed since it last did, and answers `missing` where nothing is.
 * Paths lead through links. What `load` throws is passed on and not kept.
 *
 * Whoever changes a file within the tick of the clock in which it was read leaves no trace in its times. So nothing is
 * kept of a file that was changed less than a tick ago, as git does with its index. After that every change shows
 * in the times: those of two seconds later are others, whatever the precision.
 *
 * `now` is the clock by which the system stamps files, whatever time the rest of the gateway is told.
 */
export function readUnlessUnchanged<Value>(
  missing: Value,
  load: (path: string) => Promise<Value>,
  now: () => number = Date.now,
): (path: string) => Promise<Value> {
  /** In the order of use, the least recent first. */
  const entries = new Map<string, Entry<Value>>();
  let total = 0;

  return async (path) => {
    const before = now();
    const found = look(path);
    const entry = entries.get(path);
    if (entry !== undefined) forget(path, entry);
    if (found === 'missing') return missing;
    if (entry !== undefined && found !== 'unknown' && isSame(entry.stamp, found)) {
      keep(path, entry);
      return entry.value;
    }
    const value = await load(path);
    if (found !== 'unknown' && Math.max(found.mtimeMs, found.ctimeMs) < before - TICK_MS) {
      const { mtimeMs, ctimeMs, size, ino, dev } = found;
      keep(path, { stamp: { mtimeMs, ctimeMs, size, ino, dev }, bytes: size + ENTRY_BYTES, value });
    }
    return value;
  };

  function keep(path: string, entry: Entry<Value>): void {
    // Read twice at the same time.
    const other = entries.get(path);
    if (other !== undefined) forget(path, other);
    if (entry.bytes > MAX_BYTES) return;
    entries.set(path, entry);
    total += entry.bytes;
    for (const [oldest, its] of entries) {
      if (total <= MAX_BYTES) return;
      forget(oldest, its);
    }
  }

  function forget(path: string, entry: Entry<Value>): void {
    entries.delete(path);
    total -= entry.bytes;
  }
}

/**
 * Synchronous, because the kernel mostly knows the answer: that takes a microsecond or two, where the way through the
 * thread pool takes thirty. On a disk that is slow for the moment the event loop waits for one look at an inode.
 */
function look(path: string): Stats | 'missing' | 'unknown' {
  try {
    return statSync(path, { throwIfNoEntry: false }) ?? 'missing';
  } catch {
    // A link loop, a file for a folder, no access: whoever loads it says what that means.
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
