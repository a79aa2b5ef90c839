/**
 * Copies an open database consistently into a new file, while other processes go on writing. Does not use the binding's
 * `backup`, which creates a native object whose collection aborts Node 24 (see `keepStatements`).
 */
import { rename, rm } from 'node:fs/promises';
import type { Connection } from './connection.js';
import { storeFault } from './faults.js';

export async function copyDatabase(connection: Connection, file: string): Promise<void> {
  const partial = `${file}.partial`;
  try {
    await rm(partial, { force: true });
    await connection.patiently(() => {
      connection.raw.exec(`VACUUM INTO '${partial.replaceAll("'", "''")}'`);
    });
    await rename(partial, file);
  } catch (error) {
    await rm(partial, { force: true });
    throw storeFault(error, file);
  }
}
