/**
 * Whether the path of an open database still leads to it. Whoever removes, replaces or moves the file or its log changes
 * nothing for SQLite, which goes on writing into what nobody will open again: then nothing may be acknowledged.
 */
import { realpathSync, statSync } from 'node:fs';

/** What happened, as it is told. */
export type Displaced = { part: 'database' | 'log'; how: 'removed' | 'replaced' };

export interface PlaceOfDatabase {
  /** SQLite's write-ahead log; beside the file itself, where the path is a link. */
  readonly logFile: string;
  /** null where everything is in its place. Throws where that cannot be seen. */
  displaced(): Displaced | null;
}

/** To be asked for while the database is being opened. A database in memory has no place to lose. */
export function placeOf(file: string): PlaceOfDatabase {
  if (file === ':memory:') return { logFile: file, displaced: () => null };
  const logFile = `${realpathSync(file)}-wal`;
  const database = identityOf(file);
  let log = identityOf(logFile);

  return {
    logFile,
    displaced() {
      const there = identityOf(file);
      if (there !== database) return { part: 'database', how: there === null ? 'removed' : 'replaced' };
      const logThere = identityOf(logFile);
      log ??= logThere;
      if (logThere !== log) return { part: 'log', how: logThere === null ? 'removed' : 'replaced' };
      return null;
    },
  };
}

/** The volume and the number of a file there; null where there is none. */
function identityOf(path: string): string | null {
  try {
    const found = statSync(path, { bigint: true, throwIfNoEntry: false });
    return found === undefined ? null : `${found.dev}:${found.ino}`;
  } catch (error) {
    // Where a folder was, a file stands.
    if (error instanceof Error && 'code' in error && error.code === 'ENOTDIR') return null;
    throw error;
  }
}
