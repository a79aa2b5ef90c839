/** A PostgreSQL database is brought up to date by one process at a time, wholly or not at all, or refused. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import Sqlite from 'better-sqlite3';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { describe as told } from '../../src/core/errors.js';
import { knownMigrations, migratePostgres } from '../../src/store/migrate.js';
import { connectPostgres, type PostgresDatabase } from '../../src/store/postgres/connection.js';
import { describeWithPostgres, type PostgresServer, startPostgres } from '../harness/postgres.js';
import { MIGRATIONS as MIGRATIONS_OF_SQLITE, openHere } from './place.js';

const MIGRATIONS = fileURLToPath(new URL('../../migrations/postgres', import.meta.url));
const MIGRATOR = fileURLToPath(new URL('./migrator.mjs', import.meta.url));
const LATEST = knownMigrations(MIGRATIONS).at(-1);

let server: PostgresServer;
let url: string;
let newer: string;
let opened: PostgresDatabase[] = [];

async function open(to = url): Promise<PostgresDatabase> {
  const database = await connectPostgres({
    url: to,
    clock: systemClock,
    sqliteMigrations: MIGRATIONS_OF_SQLITE,
  });
  opened.push(database);
  return database;
}

const migrate = async (folder = MIGRATIONS, to = url) => migratePostgres(await open(to), folder);

async function column<T>(sql: string): Promise<T[]> {
  return (await server.query<Record<string, T>>(sql, url)).map((row) => Object.values(row)[0] as T);
}
const tables = () => column<string>(`select tablename from pg_tables where schemaname = 'public' order by 1`);
const applied = () => column<string>('select tag from migration order by tag');

/** Adds a migration to the newer version's folder. */
async function add(tag: string, sql: string): Promise<void> {
  const journal = join(newer, 'meta', '_journal.json');
  const { entries, ...rest } = JSON.parse(await readFile(journal, 'utf8'));
  entries.push({ ...entries[0], idx: entries.length, tag });
  await writeFile(journal, JSON.stringify({ ...rest, entries }));
  await writeFile(join(newer, `${tag}.sql`), sql);
}

/** Tables, columns, types, whether null is refused, and defaults; then the columns of keys and indexes. */
const IN_SQLITE = [
  `select m.name, c.name, replace(lower(c.type), 'integer', 'bigint'), c."notnull",
     replace(coalesce(c.dflt_value, ''), 'false', '0')
   from sqlite_master as m join pragma_table_info(m.name) as c
   where m.type = 'table' and m.name not in ('migration', 'sqlite_sequence')`,
  `select tbl, "index", u, p, group_concat(coalesce(col, '(…)')) from (
     select m.name as tbl, i.name as "index", i."unique" as u, i.partial as p, c.name as col
     from sqlite_master as m join pragma_index_list(m.name) as i join pragma_index_info(i.name) as c
     where m.type = 'table' and i.origin = 'c' order by i.name, c.seqno)
   group by tbl, "index"`,
  `select tbl, 'key', 1, 0, group_concat(col) from (
     select m.name as tbl, c.name as col from sqlite_master as m join pragma_table_info(m.name) as c
     where m.type = 'table' and m.name not in ('migration', 'sqlite_sequence') and c.pk > 0 order by c.pk)
   group by tbl`,
];
const IN_POSTGRES = [
  `select table_name, column_name, data_type as type, (is_nullable = 'NO')::int as not_null,
     replace(coalesce(column_default, ''), '::text', '') as initially
   from information_schema.columns where table_schema = 'public' and table_name not in ('migration', 'writer', 'node', 'lease')`,
  `select t.relname as "table", case when i.indisprimary then 'key' else x.relname end as name,
     i.indisunique::int as is_unique, (i.indpred is not null)::int as is_partial,
     (select string_agg(coalesce(a.attname, '(…)'), ',' order by place)
      from unnest(i.indkey) with ordinality as k (number, place)
      left join pg_attribute as a on a.attrelid = t.oid and a.attnum = k.number) as columns
   from pg_index as i join pg_class as t on t.oid = i.indrelid join pg_class as x on x.oid = i.indexrelid
   where t.relnamespace = 'public'::regnamespace and t.relname not in ('migration', 'writer', 'node', 'lease')`,
];
/** The sessions that are at a statement. */
const running = (statement: string) =>
  column(`select pid from pg_stat_activity
    where state = 'active' and ltrim(query, e'\\n') like '${statement}%' and pid <> pg_backend_pid()`);

describeWithPostgres('on PostgreSQL', () => {
  beforeAll(async () => {
    server = await startPostgres({ tcp: true });
  });
  afterAll(() => server?.close());
  beforeEach(async () => {
    url = await server.emptyDatabase();
    newer = await mkdtemp(join(tmpdir(), 'coterie-migrations-'));
    await cp(MIGRATIONS, newer, { recursive: true });
  });
  afterEach(async () => {
    for (const database of opened) await database.close();
    opened = [];
    await rm(newer, { recursive: true });
    await server.dropDatabase(url);
  });

  it('a new database has the tables, columns, defaults, keys and indexes of one on SQLite', async () => {
    await migrate();
    const place = await openHere();
    await (await place.open()).close();
    const sqlite = new Sqlite(place.file, { readonly: true });
    const there = IN_SQLITE.flatMap((sql) => sqlite.prepare(sql).raw().all() as unknown[][]);
    sqlite.close();
    await place.remove();
    const here = await Promise.all(IN_POSTGRES.map((sql) => server.query<object>(sql, url)));
    const lines = (rows: unknown[][]) => rows.map((row) => row.join(' ')).sort();
    expect(there.length).toBeGreaterThan(300);
    expect(lines(here.flat().map((row) => Object.values(row)))).toEqual(lines(there));
  });

  it('numbers what SQLite numbers, from 1, and takes numbers that are given', async () => {
    await migrate();
    const identities = `select table_name || '.' || column_name from information_schema.columns
      where is_identity = 'YES' and table_schema = 'public' order by 1`;
    expect(await column(identities)).toEqual([
      ...['command.id', 'message.id', 'outbox.id', 'question.id', 'task.n', 'version.n'],
    ]);
    const ask = `insert into question (id, room_id, sender_id, asked_by, name, argument, until)`;
    await server.query(`${ask} values (7, 'r', 's', '', '', '', 0), (default, 'r', 't', '', '', '', 0)`, url);
    expect(await column('select id from question order by id')).toEqual(['1', '7']);
    expect(await column(`select nextval('journal_number')`)).toEqual(['1']);
  });

  it('runs what is pending, once', async () => {
    await migrate();
    await add(
      '0101_more',
      'create table extra (id bigint);--> statement-breakpoint\ninsert into extra values (1);',
    );
    await migrate(newer);
    await migrate(newer);
    expect(await column('select id from extra')).toEqual(['1']);
    expect(await applied()).toEqual([...knownMigrations(MIGRATIONS), '0101_more']);
  });

  it('runs it once if two do it at the same time', async () => {
    await add(
      '0101_more',
      'create table extra (id bigint); select pg_sleep(0.3); insert into extra values (1);',
    );
    await Promise.all([migrate(newer), migrate(newer), migrate(newer)]);
    expect(await column('select id from extra')).toEqual(['1']);
  });

  it('changes nothing if one of them fails, and says which', async () => {
    await add('0101_more', 'create table extra (id bigint);');
    await add(
      '0102_broken',
      'create table other (id bigint);--> statement-breakpoint\nalter table nonsense add x int;',
    );
    const failed: unknown = await migrate(newer).catch((error: unknown) => error);
    expect(failed).toMatchObject({ code: 'store_unavailable' });
    expect(told(failed)).toMatch(/0102_broken failed; nothing was changed.*"nonsense" does not exist/);
    expect(await tables()).toEqual([]);
    await migrate();
  });

  it('waits for a table that somebody holds, without holding up others for long', async () => {
    await migrate();
    await add('0101_more', 'alter table chat add more bigint;');
    const holder = await open();
    let letGo: (() => void) | undefined;
    const held = holder.transaction(async (query) => {
      await query('select from chat');
      await new Promise<void>((resolve) => {
        letGo = resolve;
      });
    });
    await vi.waitFor(() => expect(letGo).toBeDefined(), 10_000);
    const migrated = migrate(newer);
    try {
      await vi.waitFor(async () => expect(await running('alter table chat')).toHaveLength(1), 10_000);
      const since = Date.now();
      await server.query('select from chat', url);
      // A write would wait for ten seconds.
      expect(Date.now() - since).toBeLessThan(7_000);
    } finally {
      letGo?.();
      await Promise.all([held, migrated]);
    }
    expect(await applied()).toContain('0101_more');
  });

  it('killed half-way, it has changed nothing, and the next one does all', async () => {
    await add('0101_more', 'create table extra (id bigint);--> statement-breakpoint\nselect pg_sleep(1);');
    const child = spawn(process.execPath, [MIGRATOR, url, newer], { stdio: ['ignore', 'ignore', 'inherit'] });
    const ended = once(child, 'exit');
    await vi.waitFor(async () => expect(await running('select pg_sleep')).toHaveLength(1), 20_000);
    child.kill('SIGKILL');
    expect(await ended).toEqual([null, 'SIGKILL']);
    expect(await tables()).toEqual([]);
    await migrate();
    expect(await applied()).toEqual(knownMigrations(MIGRATIONS));
    expect(await tables()).not.toContain('extra');
  });

  describe('a newer version that only added something', () => {
    const ADDS = `-- beside: ${LATEST}\nalter table chat add more bigint;`;
    const besides = () => column(`select coalesce(beside, '-') from migration order by tag`);

    it('leaves a database on which this one works, as long as all of them only added', async () => {
      await add('0101_more', ADDS);
      await migrate(newer);
      await migrate();
      expect(await applied()).toEqual([...knownMigrations(MIGRATIONS), '0101_more']);
      expect((await besides()).at(-1)).toBe(LATEST);
      await add('0102_even', '-- beside: 0101_more\nalter table chat drop more;');
      await migrate(newer);
      await expect(migrate()).rejects.toMatchObject({
        code: 'store_newer',
        message: expect.stringContaining('0102_even'),
      });
      await migrate(newer);
    });

    it('is told apart from one that knows less: that is refused, and so is one that went another way', async () => {
      await migrate();
      await add('0101_more', ADDS);
      await migrate(newer);
      await server.query(`insert into migration values ('0101_other', 0, '0101_more')`, url);
      await expect(migrate()).rejects.toMatchObject({ code: 'store_newer' });
      await migrate(newer);
      await server.query(`delete from migration where tag = '0101_more'`, url);
      await expect(migrate(newer)).rejects.toMatchObject({ code: 'store_newer' });
    });

    it('also where the table of migrations is of a version that did not know of this', async () => {
      await migrate();
      await server.query('alter table migration drop beside', url);
      await migrate();
      await add('0101_more', ADDS);
      await migrate(newer);
      await migrate();
      expect((await besides()).slice(-2)).toEqual(['-', LATEST]);
    });
  });

  describe('refuses', () => {
    it('a database of a newer version, with both versions and what to do', async () => {
      await add('0101_more', 'create table extra (id bigint);');
      await migrate(newer);
      await expect(migrate()).rejects.toMatchObject({
        code: 'store_newer',
        message: expect.stringMatching(
          new RegExp(`test_\\d+ was .* 0101_more, .* ${LATEST}\\. .*newer version.*backup`),
        ),
      });
      await migrate(newer);
    });

    it.each(['recipes', 'migration', 'chat'])(
      'a database of another program with a table %s',
      async (name) => {
        await server.query(`create table ${name} (id bigint)`, url);
        await expect(migrate()).rejects.toMatchObject({
          code: 'store_unavailable',
          message: expect.stringMatching(`another program .*table ${name}.*store.url`),
        });
        expect(await tables()).toEqual([name]);
      },
    );

    it('a user who may not make tables, in PostgreSQL’s words', async () => {
      await server.query(`create role guest login password 'guest'`);
      try {
        const failed: unknown = await migrate(MIGRATIONS, server.overTcp(url, 'guest', 'guest')).catch(
          (e) => e,
        );
        expect(told(failed)).toMatch(/0000_start failed; nothing was changed.*permission denied/);
      } finally {
        await server.query('drop role guest');
      }
    });
  });
});
