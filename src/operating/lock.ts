/**
 * The data lock: one gateway per `data_dir`. An exclusive transaction on a small SQLite database; the operating
 * system frees it with the process, however that ends, so that no stale lock can be left behind.
 */
import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import { Fault } from '../core/errors.js';

export interface DataLock {
  release(): void;
}

/** null when another process (or another part of this one) holds it. */
export async function takeLock(file: string): Promise<DataLock | null> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 }).catch((error: unknown) => fail(file, error));
  let database: Database.Database;
  try {
    database = new Database(file, { timeout: 0 });
  } catch (error) {
    return fail(file, error);
  }
  try {
    database.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    database.close();
    if (error instanceof Database.SqliteError && error.code.startsWith('SQLITE_BUSY')) return null;
    return fail(file, error);
  }
  return { release: () => database.close() };
}

function fail(file: string, error: unknown): never {
  throw new Fault(
    'configuration',
    `The lock ${file} cannot be taken; data_dir must be a folder that can be written`,
    error,
  );
}
