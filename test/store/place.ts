/** A folder of its own for a test's database, and stores opened in it. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../../src/core/clock.js';
import type { Log } from '../../src/core/log.js';
import type { Store } from '../../src/core/store.js';
import { openSqliteStore, type SqliteOptions, type StorePlace, storeOn } from '../../src/store/open.js';
import { connectPostgres, type PostgresOptions } from '../../src/store/postgres/connection.js';
import { putNewDatabase } from '../harness/new-database.js';
import type { PostgresServer } from '../harness/postgres.js';

export const MIGRATIONS = fileURLToPath(new URL('../../migrations/sqlite', import.meta.url));

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} };

/** A file as the configuration would name it. */
export function fileAt(file: string, migrationsFolder = MIGRATIONS): StorePlace {
  const folders = { migrationsFolder, sqliteMigrations: MIGRATIONS };
  return { url: null, file, ...folders, connections: 8, waitMs: 0 };
}

export interface Place {
  folder: string;
  file: string;
  open(options?: Partial<SqliteOptions>): Promise<Store>;
  /** Closes what was opened and removes the folder. */
  remove(): Promise<void>;
}

/** With a database that was made before: for many tests of what it is used for. */
export async function openMade(): Promise<Place> {
  const place = await openHere();
  await putNewDatabase(place.file);
  return place;
}

export async function openHere(): Promise<Place> {
  const folder = await mkdtemp(join(tmpdir(), 'coterie-store-'));
  const file = join(folder, 'coterie.db');
  const opened: Store[] = [];
  return {
    folder,
    file,
    async open(options) {
      const store = await openSqliteStore({
        file,
        migrationsFolder: MIGRATIONS,
        clock: systemClock,
        log: silentLog,
        ...options,
      });
      opened.push(store);
      return store;
    },
    async remove() {
      for (const store of opened) await store.close();
      await rm(folder, { recursive: true });
    },
  };
}

export interface PostgresPlace {
  url: string;
  open(options?: Partial<PostgresOptions>): Promise<Store>;
  /** Closes what was opened, and gives the database back. */
  remove(): Promise<void>;
}

/** A new database of the server, with the store's tables. */
export async function openPostgres(server: PostgresServer): Promise<PostgresPlace> {
  const url = await server.newDatabase();
  const opened: Store[] = [];
  return {
    url,
    async open(options) {
      const given = { url, connections: 4, clock: systemClock, log: silentLog, sqliteMigrations: MIGRATIONS };
      const store = storeOn(await connectPostgres({ ...given, ...options }));
      opened.push(store);
      return store;
    },
    async remove() {
      for (const store of opened) await store.close();
      server.giveBack(url);
    },
  };
}
