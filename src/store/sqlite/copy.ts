/** A consistent copy of an open database into a new file, page by page, while others go on writing. */
import { rename, rm } from 'node:fs/promises';
import type { Connection } from './connection.js';
import { storeFault } from './faults.js';

export async function copyDatabase(connection: Connection, file: string): Promise<void> {
  const partial = `${file}.partial`;
  try {
    await rm(partial, { force: true });
    await connection.raw.backup(partial);
    await rename(partial, file);
  } catch (error) {
    await rm(partial, { force: true });
    throw storeFault(error, file);
  }
}
