/** A database is brought up to date when it is opened, or refused with a word that helps. */
import { cp, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import Database from 'better-sqlite3';
import { getTableName, is } from 'drizzle-orm';
import { getTableConfig, SQLiteTable } from 'drizzle-orm/sqlite-core';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { inspectSqlite } from '../../src/store/sqlite/inspect.js';
import * as said from '../../src/store/sqlite/schema.js';
import * as work from '../../src/store/sqlite/schema-work.js';
import { message, receive, waitingTexts } from '../contract/store/words.js';
import { MIGRATIONS, openHere, type Place } from './place.js';

let place: Place;
let newer: string;

beforeEach(async () => {
  place = await openHere();
  newer = join(place.folder, 'newer');
  await cp(MIGRATIONS, newer, { recursive: true });
});
afterEach(() => place.remove());

/** Adds a migration to the newer version's folder. */
async function addMigration(tag: string, sql: string): Promise<void> {
  const journal = join(newer, 'meta', '_journal.json');
  const { entries, ...rest } = JSON.parse(await readFile(journal, 'utf8'));
  entries.push({ ...entries[0], idx: entries.length, tag });
  await writeFile(journal, JSON.stringify({ ...rest, entries }));
  await writeFile(join(newer, `${tag}.sql`), sql);
}

function rawly<T>(read: (db: Database.Database) => T, file = place.file): T {
  const db = new Database(file);
  try {
    return read(db);
  } finally {
    db.close();
  }
}

const copies = async () => (await readdir(place.folder)).filter((name) => name.includes('.before-')).sort();

describe('a pending migration', () => {
  beforeEach(async () => {
    const store = await place.open();
    await receive(store, [message('1', 'kept')]);
    await store.close();
    await addMigration(
      '0101_more',
      'CREATE TABLE extra (id integer);\n--> statement-breakpoint\nALTER TABLE extra ADD more integer;',
    );
  });

  it('runs after a copy was made, and keeps what was there', async () => {
    const store = await place.open({ migrationsFolder: newer });
    expect(await waitingTexts(store)).toEqual(['kept']);
    expect(await copies()).toEqual(['coterie.db.before-101']);
    const tables = (db: Database.Database) =>
      db.prepare(`select name from sqlite_master where name = 'extra'`).pluck().all();
    expect(rawly(tables)).toEqual(['extra']);
    expect(rawly(tables, join(place.folder, 'coterie.db.before-101'))).toEqual([]);
  });

  it('runs once, and without one no copy is made', async () => {
    await (await place.open({ migrationsFolder: newer })).close();
    await (await place.open({ migrationsFolder: newer })).close();
    expect(await copies()).toEqual(['coterie.db.before-101']);
  });

  it('that fails changes nothing, also not what came before it', async () => {
    await addMigration('0102_broken', 'CREATE TABLE other (id integer); ALTER TABLE nonsense ADD x integer;');
    await expect(place.open({ migrationsFolder: newer })).rejects.toMatchObject({
      code: 'store_unavailable',
      message: expect.stringContaining('0102_broken'),
    });
    expect(await waitingTexts(await place.open())).toEqual(['kept']);
  });

  it('leaves the last three copies', async () => {
    for (const n of [2, 3, 4, 5]) {
      await (await place.open({ migrationsFolder: newer })).close();
      await addMigration(`010${n}_more`, `CREATE TABLE extra${n} (id integer);`);
    }
    await (await place.open({ migrationsFolder: newer })).close();
    expect(await copies()).toEqual([3, 4, 5].map((n) => `coterie.db.before-10${n}`));
  });
});

it('a new database is made without a copy, in a folder that may be missing', async () => {
  const file = join(place.folder, 'not', 'there', 'yet.db');
  await (await place.open({ file })).close();
  expect(await readdir(join(place.folder, 'not', 'there'))).toEqual(['yet.db']);
});

it('two processes may open a new database at once', async () => {
  const [one, two] = await Promise.all([place.open(), place.open()]);
  await receive(one, [message('1', 'hi')]);
  expect(await waitingTexts(two)).toEqual(['hi']);
});

describe('refused is', () => {
  it('a database of a newer version, with both versions and what to do', async () => {
    await addMigration('0101_more', 'CREATE TABLE extra (id integer);');
    await (await place.open({ migrationsFolder: newer })).close();
    await expect(place.open()).rejects.toMatchObject({
      code: 'store_newer',
      message: expect.stringMatching(/0101_more.*0006_claims.*newer version.*backup/),
    });
    await (await place.open({ migrationsFolder: newer })).close();
  });

  it('a file that is no database, untouched', async () => {
    const text = 'dear diary, '.repeat(500);
    await writeFile(place.file, text);
    await expect(place.open()).rejects.toMatchObject({
      code: 'store_unavailable',
      message: expect.stringContaining(place.file),
    });
    expect(await readFile(place.file, 'utf8')).toBe(text);
  });

  it('a database of another program', async () => {
    rawly((db) => db.exec('create table recipes (id integer)'));
    await expect(place.open()).rejects.toMatchObject({ code: 'store_unavailable' });
    expect(rawly((db) => db.prepare('select name from sqlite_master').pluck().all())).toEqual(['recipes']);
  });

  it('a folder in place of the file', async () => {
    await expect(place.open({ file: place.folder })).rejects.toMatchObject({ code: 'store_unavailable' });
  });
});

describe('doctor sees', () => {
  const look = (migrations = MIGRATIONS) => inspectSqlite(place.file, pathToFileURL(migrations));

  it('a database that is missing, and does not make it', async () => {
    expect(await look()).toEqual({ kind: 'missing' });
    expect(await look()).toEqual({ kind: 'missing' });
  });

  it('one that is in use, and what would be migrated, without doing it', async () => {
    const store = await place.open();
    await receive(store, [message('1', 'hi')]);
    await addMigration('0101_more', 'CREATE TABLE extra (id integer);');
    expect(await look()).toEqual({ kind: 'found', pending: 0, parked: 0 });
    expect(await look(newer)).toEqual({ kind: 'found', pending: 1, parked: 0 });
    expect(await look(newer)).toEqual({ kind: 'found', pending: 1, parked: 0 });
  });

  it('what is wrong with it', async () => {
    await writeFile(place.file, 'dear diary, '.repeat(500));
    await expect(look()).rejects.toMatchObject({ code: 'store_unavailable' });
  });
});

describe('the migrations', () => {
  const tables = Object.values({ ...said, ...work }).filter((value) => is(value, SQLiteTable));

  it.each(tables.map((table) => [getTableName(table), table] as const))(
    'make %s as the schema has it',
    async (name, table) => {
      await (await place.open()).close();
      const { columns, indexes } = getTableConfig(table);
      const made = rawly((db) => ({
        columns: db.pragma(`table_info(${name})`) as { name: string; type: string; notnull: number }[],
        indexes: db
          .prepare(`select name from sqlite_master where type = 'index' and sql is not null and tbl_name = ?`)
          .pluck()
          .all(name),
      }));
      expect(
        made.columns.map((column) => [column.name, column.type.toLowerCase(), column.notnull === 1]),
      ).toEqual(columns.map((column) => [column.name, column.getSQLType(), column.notNull]));
      expect(made.indexes.sort()).toEqual(indexes.map((index) => index.config.name).sort());
    },
  );

  it.each(['heard', 'turn', 'step', 'usage', 'archived', 'shown'])(
    'keep %s in the order of its key',
    async (name) => {
      await (await place.open()).close();
      const made = rawly((db) =>
        db.prepare('select sql from sqlite_master where name = ?').pluck().get(name),
      );
      expect(made).toContain('WITHOUT ROWID');
    },
  );
});
