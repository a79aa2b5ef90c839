/** Maps SQLite's errors to faults that an operator can act on. Codes that indicate bugs pass unchanged. */
import { Fault } from '../../core/errors.js';

/** Another process holds the database at the moment. */
export function isBusy(error: unknown): boolean {
  const code = codeOf(error);
  return code.startsWith('SQLITE_BUSY') || code.startsWith('SQLITE_LOCKED');
}

export function storeFault(error: unknown, file: string): unknown {
  const advice = adviceFor(codeOf(error));
  return advice === undefined ? error : new Fault('store_unavailable', `${file}: ${advice}`, error);
}

function adviceFor(code: string): string | undefined {
  if (code.startsWith('SQLITE_BUSY') || code.startsWith('SQLITE_LOCKED'))
    return 'another process holds the database. Find it (a backup, an open sqlite3 shell) and end it';
  if (code.startsWith('SQLITE_FULL'))
    return 'the disk is full. Free some space; nothing was half written, and it goes on by itself';
  if (code.startsWith('SQLITE_NOTADB'))
    return 'this file is not an SQLite database. Move it away, or restore a backup';
  if (code.startsWith('SQLITE_CORRUPT'))
    return 'the database is damaged. Stop the gateway and restore a backup';
  if (code.startsWith('SQLITE_IOERR'))
    return 'the disk failed while reading or writing. Check the disk and the space left on it';
  if (code.startsWith('SQLITE_CANTOPEN'))
    return 'the database cannot be opened. Check that its folder exists and may be read and written';
  if (code.startsWith('SQLITE_READONLY') || code.startsWith('SQLITE_PERM'))
    return 'the database may not be written. Check the owner and the mode of the file and of its folder';
  return undefined;
}

function codeOf(error: unknown): string {
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') return error.code;
  return '';
}
