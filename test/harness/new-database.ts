/**
 * A newly migrated database, made once per process and then copied, so that tests need not run migrations
 * (`store/migrate.test.ts` tests those).
 */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../../src/core/clock.js';
import { openSqliteStore } from '../../src/store/open.js';
import { quietLog } from './quiet.js';

const MIGRATIONS = fileURLToPath(new URL('../../migrations/sqlite', import.meta.url));

let made: Promise<Buffer> | null = null;

/** Creates the database if there is none. */
export async function putNewDatabase(file: string): Promise<void> {
  made ??= make();
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  await writeFile(file, await made, { flag: 'wx' }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
}

async function make(): Promise<Buffer> {
  const folder = await mkdtemp(join(tmpdir(), 'coterie-new-'));
  try {
    const file = join(folder, 'coterie.db');
    const store = await openSqliteStore({
      ...{ file, migrationsFolder: MIGRATIONS, clock: systemClock, log: quietLog },
    });
    await store.close();
    return await readFile(file);
  } finally {
    await rm(folder, { recursive: true });
  }
}
