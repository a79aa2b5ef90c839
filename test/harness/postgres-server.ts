/**
 * Around the project `postgres` of `vitest.config.ts`: one server for all its files, with a migrated database that tests
 * copy. Its files are also run on SQLite, by the project `rest`.
 */
import { fileURLToPath } from 'node:url';
import type { TestProject } from 'vitest/node';
import { systemClock } from '../../src/core/clock.js';
import { openStoreAt } from '../../src/store/open.js';
import { missing, startPostgres } from './postgres.js';
import { quietLog } from './quiet.js';

declare module 'vitest' {
  interface ProvidedContext {
    /** The URL of the migrated database; empty without an installed PostgreSQL. */
    postgres: string;
  }
}

const MIGRATIONS = fileURLToPath(new URL('../../migrations/postgres', import.meta.url));

export default async function setUp({ provide }: TestProject): Promise<() => Promise<void>> {
  if (missing !== null) {
    provide('postgres', '');
    return async () => {};
  }
  const server = await startPostgres();
  const url = await server.emptyDatabase();
  const folders = { migrationsFolder: MIGRATIONS, sqliteMigrations: '' };
  const at = { url, file: '', ...folders, connections: 3, waitMs: 10_000 };
  const store = await openStoreAt(at, { clock: systemClock, log: quietLog });
  await store.close();
  provide('postgres', url);
  return () => server.close();
}
