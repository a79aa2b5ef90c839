/**
 * Saves what is in an open database whose file or log is not where it was: what was acknowledged must be in a file that
 * somebody finds. Synchronous, so that nothing comes between, and once: the process ends afterwards.
 */
import { closeSync, mkdirSync, openSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import type Database from 'better-sqlite3';
import { Fault } from '../../core/errors.js';

/** What happened, as it is told. */
export type Displaced = { part: 'database' | 'log'; how: 'removed' | 'replaced' };

/** Returns where everything is now. Throws where it could not be saved. */
export function rescue(
  raw: Database.Database,
  { file, logFile, displaced, now }: { file: string; logFile: string; displaced: Displaced; now: number },
): string {
  const { part, how } = displaced;
  // Without its log, the file itself can take all of it.
  if (part === 'log' && how === 'removed' && emptyLog(raw)) return file;
  const copy = `${file}.rescued-${new Date(now).toISOString().replace(/[:.]/g, '-')}`;
  mkdirSync(dirname(copy), { recursive: true, mode: 0o700 });
  // SQLite takes an empty file, and leaves its mode as it is.
  closeSync(openSync(copy, 'wx', 0o600));
  try {
    raw.exec(`VACUUM INTO '${copy.replaceAll("'", "''")}'`);
  } catch (error) {
    rmSync(copy, { force: true });
    throw error;
  }
  // The log of the old file, beside a new one, would be read into that at its next opening.
  if (part === 'database' && how === 'replaced') {
    for (const left of [logFile, logFile.replace(/-wal$/, '-shm')]) rmSync(left, { force: true });
  }
  return copy;
}

function emptyLog(raw: Database.Database): boolean {
  const told = raw.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get() as { busy: number };
  return told.busy === 0;
}

/** What happened, and what is to be done. `kept`: where everything is now; null where it could not be saved, and why. */
export function displacedFault(
  file: string,
  { part, how }: Displaced,
  kept: string | null,
  cause?: unknown,
): Fault {
  const what = part === 'database' ? file : `the write-ahead log of ${file}`;
  const next =
    kept === null
      ? 'what it holds cannot be saved beside it, which is tried again; do not end this process before'
      : kept === file
        ? 'everything was brought into the database itself; start again'
        : `everything up to then is in ${kept}; put the right file in place, and start again`;
  return new Fault('store_unavailable', `${what} was ${how} while it was open; ${next}`, cause);
}
