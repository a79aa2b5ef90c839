/** A database is brought up to date when it is opened, or refused with a word that helps. */

import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cp, readdir, readFile, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import Database from 'better-sqlite3';
import { getTableName } from 'drizzle-orm';
import { toSnakeCase } from 'drizzle-orm/casing';
import { getTableConfig } from 'drizzle-orm/sqlite-core';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { inspectStore } from '../../src/store/inspect.js';
import { knownMigrations } from '../../src/store/migrate.js';
import * as schema from '../../src/store/schema.js';
import {
  begun,
  CHAT,
  claimed,
  delivery,
  finish,
  lease,
  message,
  NOW,
  nextOf,
  receive,
  recovered,
  usedIn,
  waitingTexts,
  windowTexts,
} from '../contract/store/words.js';
import { fileAt, MIGRATIONS, openHere, type Place } from './place.js';

const run = promisify(execFile);

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
      message: expect.stringMatching(/0101_more.*0019_shown_at.*newer version.*backup/),
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
  const look = async (migrations?: string) => {
    const found = await inspectStore(fileAt(place.file, migrations), systemClock);
    await found?.close();
    return found;
  };

  it('a database that is missing, and does not make it', async () => {
    expect(await look()).toBeNull();
    expect(await look()).toBeNull();
  });

  it('one that is in use, and what would be migrated, without doing it', async () => {
    const store = await place.open();
    await receive(store, [message('1', 'hi')]);
    await addMigration('0101_more', 'CREATE TABLE extra (id integer);');
    expect(await look()).toMatchObject({
      ...{ name: expect.stringMatching(/^SQLite 3\./), place: place.file, server: null },
      ...{ pending: 0, parked: 0, reads: { values: expect.any(Function) } },
    });
    expect(await look(newer)).toMatchObject({ pending: 1, parked: 0, reads: null });
    expect(await look(newer)).toMatchObject({ pending: 1, parked: 0, reads: null });
  });

  it('what is wrong with it', async () => {
    await writeFile(place.file, 'dear diary, '.repeat(500));
    await expect(look()).rejects.toMatchObject({ code: 'store_unavailable' });
  });
});

describe('the migrations', () => {
  it.each([
    ['sqlite', ['--dialect=sqlite', '--schema=src/store/schema.ts']],
    ['postgres', ['--dialect=postgresql', '--schema=src/store/schema-postgres.ts']],
  ])('for %s lack nothing that the schema has', async (database, options) => {
    const root = fileURLToPath(new URL('../..', import.meta.url));
    const out = join(place.folder, database);
    await cp(join(root, 'migrations', database), out, { recursive: true });
    const generate = [
      'node_modules/drizzle-kit/bin.cjs',
      'generate',
      '--casing=snake_case',
      `--out=${relative(root, out)}`,
    ];
    const { stdout } = await run(process.execPath, [...generate, ...options], { cwd: root });
    expect(stdout).toContain('No schema changes');
  });

  it.each(Object.values(schema).map((table) => [getTableName(table), table] as const))(
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
        made.columns.map((column) => [column.name, column.type.toLowerCase(), column.notnull === 1]).sort(),
      ).toEqual(
        columns.map((column) => [toSnakeCase(column.name), column.getSQLType(), column.notNull]).sort(),
      );
      expect(made.indexes.sort()).toEqual(indexes.map((index) => index.config.name).sort());
    },
  );

  it.each(['heard', 'turn', 'step', 'usage', 'spent', 'archived', 'shown'])(
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

describe('a database of an earlier version', () => {
  const tags = knownMigrations(MIGRATIONS);

  /** As that version had left it: a reply sent, one that was being sent, a turn that ran and showed something. */
  function leftBy(tag: string): void {
    rawly((db) => {
      db.exec('create table migration (tag text primary key not null, applied_at integer not null)');
      for (const each of tags.slice(0, tags.indexOf(tag) + 1)) {
        db.exec(readFileSync(join(MIGRATIONS, `${each}.sql`), 'utf8'));
        db.prepare('insert into migration values (?, 1)').run(each);
      }
      const said = `insert into message (id, room_id, chat_id, account, moves, author_kind, author_id, author_name,
        administrator, text, sent_at, received_at, platform_message_id, mentions_bot, edited, state, turn_id) values`;
      const sent = `insert into outbox (id, origin, persona_id, speaker, part, chat_id, channel, address, kind, body,
        created_at, state, platform_message_id, finished_at) values`;
      db.exec(`
        insert into chat (id, channel, account, address, kind, title, last_message_at)
          values ('${CHAT}', 'test', 'bot', '1', 'direct', 'Old', 5);
        insert into room (id, chat_id, lease_owner, lease_until) values ('${CHAT}', '${CHAT}', 'old', 9);
        ${said}
          (1, '${CHAT}', '${CHAT}', 'bot', 0, 'person', 'test_ann', 'Ann', 0, 'first', 1, 1, '1', 0, 0, 'done', 't1'),
          (2, '${CHAT}', '${CHAT}', 'bot', 0, 'persona', 'default', 'default', 0, 'said', 1, 1, null, 0, 0, 'done', 't1'),
          (3, '${CHAT}', '${CHAT}', 'bot', 0, 'person', 'test_ann', 'Ann', 0, 'second', 2, 2, '2', 0, 0, 'taken', 't2'),
          (4, '${CHAT}', '${CHAT}', 'bot', 0, 'person', 'test_ann', 'Ann', 0, 'third', 3, 3, '3', 0, 0, 'waiting', null);
        insert into heard values ('${CHAT}', 'default', 1, 1, 1), ('${CHAT}', 'default', 1, 1, 2),
          ('${CHAT}', 'default', 1, 3, 3);
        insert into turn (id, room_id, persona_id, state, started_at, batch)
          values ('t1', '${CHAT}', 'default', 'answered', 1, '[1]'), ('t2', '${CHAT}', 'default', 'running', 2, '[3]');
        ${sent}
          (1, 'turn:t1', 'default', 'D', 0, '${CHAT}', 'test', '1', 'direct', '{"text":"said","marks":[]}', 1, 'sending', null, null),
          (2, 'turn:t2', 'default', 'D', 0, '${CHAT}', 'test', '1', 'direct', '{"text":"so","marks":[]}', 1, 'open', '77', null);
        insert into command (id, room_id, chat_id, account, moves, platform_message_id, sender_id, sender_name,
          administrator, name, argument, after_message, received_at, state, tries)
          values (1, '${CHAT}', '${CHAT}', 'bot', 0, '9', 'test_ann', 'Ann', 0, 'help', '', 4, 1, 'running', 1);
        insert into approval (id, kind, owner, approved_at) values ('test_ann', 'sender', 1, 1);
        insert into view (room_id, persona_id, reset_at) values ('${CHAT}', 'default', 0);`);
    });
  }

  /** The tables changed their form with `0006_claims`, what is in them later did not. */
  const old = tags.slice(0, tags.indexOf('0006_claims'));

  it('0006_claims keeps what was used, of which nothing is known to be cached', async () => {
    rawly((db) => {
      db.exec('create table migration (tag text primary key not null, applied_at integer not null)');
      for (const each of tags.slice(0, old.length + 1)) {
        db.exec(readFileSync(join(MIGRATIONS, `${each}.sql`), 'utf8'));
        db.prepare('insert into migration values (?, 1)').run(each);
      }
      db.exec(`insert into usage values ('${CHAT}', 0, 'default', 2, 30, 4)`);
    });
    const store = await place.open();
    expect(await usedIn(store, CHAT, 0)).toEqual([
      { personaId: 'default', turns: 2, usage: { inputTokens: 30, outputTokens: 4 } },
    ]);
    await store.close();
  });

  it.each(old)('%s goes on where it was left', async (tag) => {
    leftBy(tag);
    const store = await place.open();
    const left = await recovered(store);
    expect(left).toMatchObject({ rooms: [CHAT], commands: [{ id: 1 }], chats: [CHAT], alarms: [] });
    expect(await store.takeCommand(1, lease())).toMatchObject({ tries: 2, crashes: 1 });
    expect(await store.approvalOf({ chatId: CHAT, senderId: 'test_ann' })).toMatchObject({ owner: true });
    const turn = await claimed(store);
    expect(turn.turn).toMatchObject({
      id: 't2',
      crashes: 1,
      shown: [{ platformMessageId: '77', key: '2-open' }],
    });
    expect(turn.batch.map(({ text }) => text)).toEqual(['second']);
    expect(await finish(store, turn, 't2', { deliveries: [delivery('turn:t2', 'so it is')] })).toBe(
      'finished',
    );
    const first = await nextOf(store);
    expect(first).toMatchObject({ body: { text: 'said' }, uncertainCrashes: 1 });
    await store.settle(first?.id ?? 0, { kind: 'sent', platformMessageId: '76' }, NOW);
    expect(await nextOf(store)).toMatchObject({
      body: { text: 'so it is' },
      shown: { platformMessageId: '77', key: '2-open' },
    });
    await finish(store, await begun(store, 't3'), 't3');
    expect(await windowTexts(store)).toEqual([
      'first',
      'said',
      'second',
      'reply of t2',
      'third',
      'reply of t3',
    ]);
    expect((await store.prune({ before: 0, now: 0, most: 1 })).more, 'it was made without').toBe(false);
  });

  it('0015_portable fills in what was found in texts before', async () => {
    leftBy('0005_rooms');
    const journal = join(newer, 'meta', '_journal.json');
    const { entries, ...rest } = JSON.parse(await readFile(journal, 'utf8'));
    await writeFile(journal, JSON.stringify({ ...rest, entries: entries.slice(0, 15) }));
    await (await place.open({ migrationsFolder: newer })).close();
    const entry = (id: string, content: string) =>
      `(${id}, ${id}, 'evt-${id}', '${CHAT}', '${CHAT}', 'default', null, null, null, '{"content":"${content}"}', 1)`;
    rawly((db) =>
      db.exec(`
        insert into outbox (id, origin, persona_id, speaker, part, chat_id, channel, address, kind, body, created_at, state)
          select id, origin, '', '', 0, '${CHAT}', 'test', '1', 'direct', '{"text":"","marks":[]}', 1, 'waiting'
          from (select 3 as id, 'tool:t2:side:0' as origin union all select 4, 'pairing:1');
        insert into offer (key, room_id, sender_id, options, until) values
          ('second', '${CHAT}', '', '[]', 9), ('first', '${CHAT}', '', '[]', 9);
        insert into turn (id, room_id, persona_id, state, started_at, batch)
          values ('t3', '${CHAT}', 'default', 'answered', 3, '[]');
        insert into journal (n, changed, id, chat_id, room_id, persona_id, turn_id, status, owner, entry, at)
          values ${entry('1', 'hi')}, ${entry('2', '')};`),
    );
    await (await place.open()).close();
    const all = (sql: string) => rawly((db) => db.prepare(sql).raw().all());
    expect(all('select id, turn_id from outbox order by id')).toEqual([
      [1, 't1'],
      [3, 't2'],
      [4, null],
    ]);
    expect(all('select id, first_message from turn order by id')).toEqual([
      ['t1', 1],
      ['t2', 3],
      ['t3', 0],
    ]);
    expect(all('select key from offer order by n')).toEqual([['second'], ['first']]);
    expect(all('select id, wordless from journal order by n')).toEqual([
      ['evt-1', 0],
      ['evt-2', 1],
    ]);
  });

  it('knows a reaction, which was told by its text once', async () => {
    leftBy('0005_rooms');
    rawly((db) =>
      db.exec(`update message set quiet = 1, platform_message_id = 'reaction:1:test_ann:+' where id = 4`),
    );
    const store = await place.open();
    await finish(store, await claimed(store), 't2');
    expect((await claimed(store)).waiting).toMatchObject([{ text: 'third', reaction: true }]);
  });
});
