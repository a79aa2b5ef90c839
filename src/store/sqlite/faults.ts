/** SQLite's errors as faults that an operator can act on. */
import { Fault } from '../../core/errors.js';

const IS_BUSY = ['SQLITE_BUSY', 'SQLITE_LOCKED'];
const ADVICE: [codes: string[], advice: string][] = [
  [IS_BUSY, 'another process holds the database. Find it (a backup, an open sqlite3 shell) and end it'],
  [['SQLITE_FULL'], 'the disk is full. Free some space; nothing was half written, and it goes on by itself'],
  [['SQLITE_NOTADB'], 'this file is not an SQLite database. Move it away, or restore a backup'],
  [['SQLITE_CORRUPT'], 'the database is damaged. Stop the gateway and restore a backup'],
  [['SQLITE_IOERR'], 'the disk failed while reading or writing. Check the disk and the space left on it'],
  [
    ['SQLITE_CANTOPEN'],
    'the database cannot be opened. Check that its folder exists and may be read and written',
  ],
  [
    ['SQLITE_READONLY', 'SQLITE_PERM'],
    'the database may not be written. Check the owner and the mode of the file and of its folder',
  ],
];

/** Codes that indicate bugs pass unchanged. */
export function storeFault(error: unknown, file: string): unknown {
  const advice = ADVICE.find(([codes]) => hasCode(error, codes))?.[1];
  return advice === undefined ? error : new Fault('store_unavailable', `${file}: ${advice}`, error);
}

export function isBusy(error: unknown): boolean {
  return hasCode(error, IS_BUSY);
}

/** SQLite's extended codes begin with the code that they extend. */
function hasCode(error: unknown, codes: string[]): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : null;
  return typeof code === 'string' && codes.some((each) => code.startsWith(each));
}
