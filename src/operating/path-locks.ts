/**
 * Locks by path among gateways on several machines that share their folders. The operating system holds them, so one
 * that is killed lets go at once, and one that stands still keeps its own, so that it cannot write over what others wrote
 * meanwhile (docs/decisions/0070-files-of-several-gateways.md).
 */
import { createHash } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { join, relative, resolve, sep } from 'node:path';
import type { Clock } from '../core/clock.js';
import { type Exclusive, locks } from '../core/concurrency.js';
import { Fault } from '../core/errors.js';
import { type DataLock, takeLock } from './lock.js';

interface PathLocksOptions {
  /** For the lock files; shared like the folders. */
  folder: string;
  /** Shared folders by a name that is the same on each machine; they may be mounted anywhere. Inner ones first. */
  roots: Readonly<Record<string, string>>;
  clock: Clock;
  /** ms since anything; never jumps. */
  elapsed(): number;
  waitMs?: number;
}

/** An update takes milliseconds, a long archive some seconds; longer waits mean that a process stands still. */
const WAIT_MS = 30_000;

/**
 * Paths with the same first digits of their hash share a lock file, so that there are not as many as paths ever written.
 * A holder of a folder's lock may take locks of files, never the other way: so nobody waits in a circle.
 */
export function pathLocks({ folder, roots, clock, elapsed, waitMs = WAIT_MS }: PathLocksOptions): Exclusive {
  const places = Object.entries(roots).flatMap(([name, root]) =>
    [...new Set([resolve(root), real(root)])].map((path) => ({ name, path })),
  );
  const inTurn = locks();

  async function taken(file: string, path: string, asked: number): Promise<DataLock> {
    for (let tries = 0; ; tries++) {
      const lock = await takeLock(file).catch((error: unknown) => {
        throw new Fault('memory_unavailable', `Cannot write ${path}: its lock cannot be taken`, error);
      });
      if (lock !== null) return lock;
      if (elapsed() - asked > waitMs) break;
      await clock.sleep(1 + (tries % 9));
    }
    const reason = `another gateway holds ${file} and does not let go`;
    throw new Fault('memory_unavailable', `Cannot write ${path}: ${reason}`);
  }

  return (path, work) => {
    const asked = elapsed();
    const file = join(folder, lockFileOf(path, places));
    return inTurn(file, async () => {
      const lock = await taken(file, path, asked);
      try {
        return await work();
      } finally {
        lock.release();
      }
    });
  };
}

function lockFileOf(path: string, places: { name: string; path: string }[]): string {
  const at = resolve(path);
  const place = places.find((each) => at === each.path || at.startsWith(each.path + sep));
  const shared = place ? `${place.name}/${relative(place.path, at)}` : at;
  const hash = createHash('sha256').update(shared).digest('hex');
  return `${path.endsWith('/') ? 'folder' : 'file'}-${hash.slice(0, 2)}.lock`;
}

/** Where links lead; some paths are given resolved. */
function real(root: string): string {
  try {
    return realpathSync(root);
  } catch {
    // It is made later.
    return resolve(root);
  }
}
