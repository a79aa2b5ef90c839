/** Copies of the whole database, consistent, while others go on writing: for backups, and before a migration. */
import { rename, rm } from 'node:fs/promises';
import Database from 'better-sqlite3';
import type { Patience } from './busy.js';
import { storeFault } from './faults.js';

/** Copies everything into a new file; `change`: what is to be taken away of it. */
export type CopyTo = (file: string, change?: (copy: Database.Database) => void) => Promise<void>;

/** The binding's `backup` creates a native object whose collection aborts Node 24 (`keepStatements` in `connection.ts`). */
export function copier({ raw, patiently }: Pick<Patience, 'patiently'> & { raw: Database.Database }): CopyTo {
  return async (copy, change) => {
    const partial = `${copy}.partial`;
    try {
      await rm(partial, { force: true });
      await patiently(() => void raw.exec(`VACUUM INTO '${partial.replaceAll("'", "''")}'`));
      if (change) changeCopy(partial, change);
      await rename(partial, copy);
    } catch (error) {
      await rm(partial, { force: true });
      throw storeFault(error, copy);
    }
  };
}

/** Leaves nothing of what it takes away, neither in the file nor beside it. */
function changeCopy(file: string, change: (copy: Database.Database) => void): void {
  const copy = new Database(file);
  try {
    copy.exec('pragma journal_mode = delete; pragma secure_delete = on');
    change(copy);
    copy.exec('vacuum');
  } finally {
    copy.close();
  }
}
