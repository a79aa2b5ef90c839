/**
 * Copies the store from one database into an empty other one. SQLite's schema says which tables, columns and keys there
 * are. Rows go over by the names of their columns, in the order of their keys, so that a copy that was interrupted can
 * go on behind the rows that are there.
 */
import { hash } from 'node:crypto';
import { rename, rm, writeFile } from 'node:fs/promises';
import Sqlite from 'better-sqlite3';
import { systemClock } from '../core/clock.js';
import { Fault } from '../core/errors.js';
import { keepHandle } from '../core/v8.js';
import type { Query, Server } from './db.js';
import { migrate } from './migrate.js';
import { storeFault } from './sqlite/busy.js';
import { connect, statementsOf } from './sqlite/connection.js';

/** Rows go over in batches of so many, or of so many characters. */
const BATCH_ROWS = 1_000;
const BATCH_CHARACTERS = 1_000_000;
/** Fewer, because a row may have megabytes. */
const FETCHED_ROWS = 100;
/** All statements see the same state. */
const AT_ONE_MOMENT = 'isolation level repeatable read read only';

export interface StoredTable {
  name: string;
  columns: string[];
  key: string[];
}

type Row = Record<string, string | number | null>;

/** A database that is copied from or into. */
interface Side {
  /** In the order of the key, without the first `skipped`. */
  rows(table: StoredTable, skipped: number): Iterable<Row> | AsyncIterable<Row>;
  insert(table: StoredTable, rows: Row[]): Promise<void>;
}

const COLUMNS = `
  select kept.name as "table", info.name as "column", info.pk
  from sqlite_master as kept join pragma_table_info(kept.name) as info
  where kept.type = 'table' and kept.name not like 'sqlite%' and kept.name <> 'migration'
  order by kept.name, info.cid`;

/** All tables of a migrated database, apart from the one that says which migrations it has. */
export function tablesOf(raw: Sqlite.Database): StoredTable[] {
  const tables = new Map<string, StoredTable>();
  const columns = statementsOf(raw).all<{ table: string; column: string; pk: number }>(COLUMNS);
  for (const { table: name, column, pk } of columns) {
    const table = tables.get(name) ?? { name, columns: [], key: [] };
    tables.set(name, table);
    table.columns.push(column);
    if (pk > 0) table.key[pk - 1] = column;
  }
  return [...tables.values()];
}

/** Opens a database that nobody writes, as it is now. */
export function readSqlite(file: string): Sqlite.Database {
  const raw = keepHandle(new Sqlite(file, { readonly: true, fileMustExist: true }));
  raw.exec('begin');
  return raw;
}

/** Texts come without U+0000, which PostgreSQL refuses. The library has replaced lone surrogates. */
export function sqliteSide(raw: Sqlite.Database): Side {
  const statements = statementsOf(raw);
  return {
    *rows(table, skipped) {
      const read = keepHandle(raw.prepare<[number], Row>(`${selection(table)} limit -1 offset ?`));
      for (const row of keepHandle(read.iterate(skipped))) {
        for (const name of table.columns) {
          const value = row[name];
          if (typeof value === 'string') row[name] = value.replaceAll('\0', '');
        }
        yield row;
      }
    },
    async insert({ name, columns }, rows) {
      const values = columns.map((column) => `@${column}`);
      const sql = `insert into "${name}" (${quoted(columns)}) values (${values})`;
      raw.transaction(() => {
        for (const row of rows) statements.run(sql, row);
      })();
    },
  };
}

/** Rows can only be read in a transaction. */
export function serverSide(query: Query): Side {
  return {
    async *rows(table, skipped) {
      await query(`declare copied no scroll cursor for ${selection(table)} offset ${skipped}`);
      for (let fetched = 1; fetched > 0; ) {
        const rows = await query<Row>(`fetch ${FETCHED_ROWS} from copied`);
        fetched = rows.length;
        yield* rows;
      }
      await query('close copied');
    },
    async insert({ name, columns }, rows) {
      const list = quoted(columns);
      const given = `json_populate_recordset(null::"${name}", $1::json)`;
      await query(`insert into "${name}" (${list}) select ${list} from ${given}`, [JSON.stringify(rows)]);
    },
  };
}

function selection({ name, columns, key }: StoredTable): string {
  return `select ${quoted(columns)} from "${name}" order by ${quoted(key)}`;
}

function quoted(names: string[]): string {
  return names.map((name) => `"${name}"`).join();
}

export async function copyRows(from: Side, to: Side, table: StoredTable, skipped = 0): Promise<void> {
  let batch: Row[] = [];
  let characters = 0;
  for await (const row of from.rows(table, skipped)) {
    batch.push(row);
    for (const name of table.columns) characters += String(row[name]).length;
    if (batch.length < BATCH_ROWS && characters < BATCH_CHARACTERS) continue;
    await to.insert(table, batch);
    batch = [];
    characters = 0;
  }
  if (batch.length > 0) await to.insert(table, batch);
}

/** The number of rows, and a number that is the same for the same rows, whatever their order. */
export async function sumOf(side: Side, table: StoredTable): Promise<{ rows: number; sum: bigint }> {
  let rows = 0;
  let sum = 0n;
  for await (const row of side.rows(table, 0)) {
    rows++;
    const text = JSON.stringify(table.columns.map((name) => row[name]));
    sum = BigInt.asUintN(64, sum + hash('sha1', text, 'buffer').readBigUInt64BE());
  }
  return { rows, sum };
}

export async function sumThere(server: Server, table: StoredTable): ReturnType<typeof sumOf> {
  return server.transaction((query) => sumOf(serverSide(query), table), AT_ONE_MOMENT);
}

export async function countThere(query: Query, { name }: StoredTable): Promise<number> {
  return (await query<{ n: number }>(`select count(*) as n from "${name}"`))[0]?.n ?? 0;
}

export async function refuseFilled({ place }: Server, query: Query, tables: StoredTable[]): Promise<void> {
  for (const table of tables) {
    if ((await countThere(query, table)) === 0) continue;
    const next =
      'If they are of a restore that was cut off, drop the database, create it anew, and repeat this';
    const what = `${place} already holds rows (${table.name}); it must be empty. ${next}`;
    throw new Fault('store_unavailable', what);
  }
}

const IDENTITIES = `
  select table_name as "table", column_name as "column" from information_schema.columns
  where table_schema = current_schema() and is_identity = 'YES'`;

/** New rows get numbers behind all that were copied. */
export async function setSequences(query: Query): Promise<void> {
  const behind = (sequence: string, highest: string) =>
    query(`select setval(${sequence}, coalesce(${highest}, 1), ${highest} is not null)`);
  for (const { table, column } of await query<{ table: string; column: string }>(IDENTITIES)) {
    await behind(
      `pg_get_serial_sequence('"${table}"', '${column}')`,
      `(select max("${column}") from "${table}")`,
    );
  }
  await behind(`'journal_number'`, '(select greatest(max(n), max(changed)) from journal)');
}

/** Everything or nothing. Throws Fault for a target that has rows. */
export async function copyToServer(file: string, target: Server): Promise<void> {
  const raw = readSqlite(file);
  try {
    const tables = tablesOf(raw);
    await target.transaction(async (query) => {
      await refuseFilled(target, query, tables);
      for (const table of tables) await copyRows(sqliteSide(raw), serverSide(query), table);
      await setSequences(query);
    });
  } finally {
    raw.close();
  }
}

/** A new file with everything, as it is at one moment. `without`: tables that stay empty. */
export async function copyToSqlite(
  source: Server,
  file: string,
  without: readonly string[],
  /** Those of SQLite. */
  migrationsFolder: string,
): Promise<void> {
  const partial = `${file}.partial`;
  const remove = () =>
    Promise.all(['', '-wal', '-shm'].map((end) => rm(`${partial}${end}`, { force: true })));
  try {
    await source.transaction(async (query) => {
      await remove();
      // Nobody else may read it, from the start.
      await writeFile(partial, '', { mode: 0o600 });
      const db = await connect({ file: partial, clock: systemClock, busyTimeoutMs: 0 });
      try {
        await migrate(db, migrationsFolder);
        for (const table of tablesOf(db.raw)) {
          if (!without.includes(table.name)) await copyRows(serverSide(query), sqliteSide(db.raw), table);
        }
      } finally {
        await db.close();
      }
    }, AT_ONE_MOMENT);
    await rename(partial, file);
  } catch (error) {
    await remove();
    throw storeFault(error, file);
  }
}
