/**
 * The store of a conversation in this process, by the folder that holds its files: SQLite in it, or a database of its own in
 * the project `postgres`. Opened again, it is the same one.
 */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { inject } from 'vitest';
import type { Store } from '../../src/core/store.js';
import { openStoreAt, type StorePlace } from '../../src/store/open.js';
import { putNewDatabase } from './new-database.js';
import { databaseOf, EMPTY } from './postgres.js';

type Options = Parameters<typeof openStoreAt>[1];

const MIGRATIONS = fileURLToPath(new URL('../../migrations/', import.meta.url));

export async function openStoreIn(folder: string, options: Options): Promise<Store> {
  return openStoreAt(await placeIn(folder), options);
}

/** The folder is removed; its database is emptied and serves another, which takes a tenth of making one. */
export function removeStoreOf(folder: string): void {
  const url = used.get(folder);
  if (url !== undefined) free.push(url);
  used.delete(folder);
}

const used = new Map<string, string>();
const free: string[] = [];
let made = 0;

export async function placeIn(folder: string): Promise<StorePlace> {
  const file = join(folder, 'data/coterie.db');
  const template = inject('postgres');
  const common = { file, sqliteMigrations: join(MIGRATIONS, 'sqlite'), connections: 3, waitMs: 10_000 };
  if (template === undefined) {
    await putNewDatabase(file);
    return { ...common, url: null, migrationsFolder: common.sqliteMigrations };
  }
  const url = used.get(folder) ?? (await emptied()) ?? (await copied(template));
  used.set(folder, url);
  return { ...common, url, migrationsFolder: join(MIGRATIONS, 'postgres') };
}

async function emptied(): Promise<string | null> {
  const url = free.pop();
  if (url === undefined) return null;
  await query(url, EMPTY);
  return url;
}

async function copied(template: string): Promise<string> {
  const url = new URL(template);
  url.pathname = '/postgres';
  const name = `of_${process.pid}_${++made}`;
  await query(url.href, `create database ${name} template ${databaseOf(template)}`);
  url.pathname = `/${name}`;
  return url.href;
}

async function query(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(sql).finally(() => client.end());
}
