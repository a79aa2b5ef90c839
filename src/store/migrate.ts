/**
 * Migrates a database when it is opened, all pending migrations in one transaction. Refuses databases of a newer version,
 * and those of other programs. On PostgreSQL, where gateways of two versions run beside each other during an upgrade, a newer
 * version's migration is taken as it is if it says that it only adds.
 */
import { readFileSync } from 'node:fs';
import { readdir, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { Fault } from '../core/errors.js';
import { keepHandle } from '../core/v8.js';
import type { Database, Query, Server } from './db.js';
import { isConflict, isGone } from './postgres/faults.js';
import { storeFault } from './sqlite/busy.js';
import { type SqliteDatabase, type Statements, statementsOf } from './sqlite/connection.js';

/** A migration is identified by its drizzle-kit file name: `0003_something`. */
type Tag = string;

const CREATE_TABLE =
  'create table if not exists migration (tag text primary key not null, applied_at bigint not null)';

export function knownMigrations(folder: string): Tag[] {
  const journal: { entries: { tag: Tag }[] } = JSON.parse(
    readFileSync(join(folder, 'meta', '_journal.json'), 'utf8'),
  );
  return journal.entries.map((entry) => entry.tag);
}

function sqlOf(folder: string, tag: Tag): string {
  return readFileSync(join(folder, `${tag}.sql`), 'utf8');
}

export interface Applied {
  tag: Tag;
  /** A version that knows this one can work on the database as migrated; null: only one that knows the migration itself. */
  beside: Tag | null;
}

/** As its first line has it: `-- beside: 0005_nodes`. */
const BESIDE = /^-- beside: (\S+)$/m;

/**
 * Those that a database lacks. Throws Fault `store_newer` if it has some that this version does not know and cannot work
 * beside.
 */
export function pendingMigrations(place: string, folder: string, applied: readonly Applied[]): Tag[] {
  const known = knownMigrations(folder);
  const foreign = applied.filter(({ tag }) => !known.includes(tag));
  const pending = known.filter((tag) => !applied.some((each) => each.tag === tag));
  // With some of both, it is no later version of this one.
  const isRefused = ({ beside }: Applied) => beside === null || !known.includes(beside) || pending.length > 0;
  const newest = foreign.findLast(isRefused);
  if (newest === undefined) return pending;
  throw new Fault(
    'store_newer',
    `${place} was written by a newer coterie: its last migration is ${newest.tag}, the last one this version knows is ` +
      `${known.at(-1)}. Start the newer version again, or restore a backup that this version made`,
  );
}

/** Whether it has something that this version would leave out of a copy. */
export function isNewer(folder: string, applied: readonly Applied[]): boolean {
  const known = knownMigrations(folder);
  return applied.some(({ tag }) => !known.includes(tag));
}

// ── SQLite: after a backup copy ───────────────────────────────────────────────────────────────────────────────

const KEPT_COPIES = 3;

export async function migrate(db: SqliteDatabase, folder: string): Promise<void> {
  const applied = await db.retry(() => appliedMigrations(db.statements, db.file));
  const pending = pendingMigrations(db.file, folder, applied);
  const [first] = pending;
  if (first === undefined) return;

  if (applied.length > 0) {
    const copy = `${db.file}.before-${Number.parseInt(first, 10)}`;
    await db.copyTo(copy, []);
    await removeOldCopies(db.file);
    db.log?.info({ copy, migrations: pending }, 'migrating the database to this version; a copy was kept');
  }
  await db.writeDurably(() => {
    // Another process may have migrated it during the copy.
    const done = appliedMigrations(db.statements, db.file);
    db.raw.exec(CREATE_TABLE);
    for (const tag of pending) if (!done.some((each) => each.tag === tag)) apply(db, folder, tag);
  });
}

function apply(db: SqliteDatabase, folder: string, tag: Tag): void {
  const statements = sqlOf(folder, tag);
  try {
    db.raw.exec(statements);
  } catch (error) {
    // A full disk or a lock is not the migration's fault and is handled as usual.
    if (error instanceof Error && 'code' in error && error.code !== 'SQLITE_ERROR') throw error;
    throw new Fault('store_unavailable', `${db.file}: migration ${tag} failed; nothing was changed`, error);
  }
  db.statements.run('insert into migration (tag, applied_at) values (?, ?)', tag, db.clock.now());
}

/** One gateway works on a file: nobody has to work beside a newer version. */
export function appliedMigrations(db: Statements, file: string): Applied[] {
  const tables = db.all<{ name: string }>(`select name from sqlite_master where type = 'table'`);
  if (tables.some(({ name }) => name === 'migration')) {
    const tags = db.all<{ tag: Tag }>('select tag from migration order by tag');
    return tags.map(({ tag }) => ({ tag, beside: null }));
  }
  if (tables.length === 0) return [];
  throw new Fault(
    'store_unavailable',
    `${file}: this is a database of another program. Name another data_dir, or move the file away`,
  );
}

async function removeOldCopies(file: string): Promise<void> {
  const prefix = `${basename(file)}.before-`;
  const copies = (await readdir(dirname(file)))
    .filter((name) => name.startsWith(prefix) && /^\d+$/.test(name.slice(prefix.length)))
    .sort((a, b) => Number(b.slice(prefix.length)) - Number(a.slice(prefix.length)));
  for (const name of copies.slice(KEPT_COPIES)) await rm(join(dirname(file), name));
}

/**
 * Checks that a file from elsewhere is an intact coterie database without triggers or views, which could run foreign
 * SQL within our statements. Throws Fault `store_unavailable`, or `store_newer` for a newer version.
 */
export function refuseForeign(file: string, migrationsFolder: string): void {
  const refuse = (why: string) => new Fault('store_unavailable', `${file} cannot be used: ${why}`);
  let raw: Sqlite.Database | undefined;
  try {
    raw = keepHandle(new Sqlite(file, { readonly: true, fileMustExist: true }));
    raw.exec('pragma trusted_schema = off; pragma cell_size_check = on');
    const db = statementsOf(raw);
    const all = db.all<{ type: string; name: string; sql: string | null }>(
      'select type, name, sql from sqlite_master',
    );
    const code = all.find(
      ({ type, sql }) => type === 'trigger' || type === 'view' || /^\s*create\s+virtual/i.test(sql ?? ''),
    );
    if (code) throw refuse(`it holds a ${code.type} that is not ours (${JSON.stringify(code.name)})`);
    const applied = appliedMigrations(db, file);
    if (applied.length === 0) throw refuse('it is no database of coterie');
    pendingMigrations(file, migrationsFolder, applied);
    const { quick_check: state } = db.one<{ quick_check: string }>('pragma quick_check(1)') ?? {};
    if (state !== 'ok') throw refuse(`it is damaged (${state})`);
  } catch (error) {
    throw storeFault(error, file);
  } finally {
    raw?.close();
  }
}

// ── PostgreSQL: by one process at a time ──────────────────────────────────────────────────────────────────────

/** Short, because others wait for whoever waits for a table; the transaction is then repeated. */
const LOCK_TIMEOUT = `set local lock_timeout = '2s'`;
const LOCK = `select pg_advisory_xact_lock(hashtextextended('migration', 0))`;
/** Older versions made the table without this column. */
const ADD_BESIDE = 'alter table migration add column if not exists beside text';
const APPLIED = `select tag, to_jsonb(migration)->>'beside' as beside from migration order by tag`;
const TABLES = 'select tablename as name from pg_tables where schemaname = current_schema()';

export async function migratePostgres(database: Database & Server, folder: string): Promise<void> {
  const { place, clock, log } = database;
  await database.transaction(async (query) => {
    await query(LOCK_TIMEOUT);
    await query(LOCK);
    const pending = pendingMigrations(place, folder, await appliedTo(query, place));
    if (pending.length === 0) return;
    log?.info({ place, migrations: pending }, 'migrating the database to this version');
    for (const tag of pending) {
      const sql = sqlOf(folder, tag);
      await applyTo(query, place, tag, [CREATE_TABLE, ADD_BESIDE, ...sql.split('--> statement-breakpoint')]);
      const [, beside = null] = BESIDE.exec(sql) ?? [];
      const values = [tag, clock.now(), beside];
      await query('insert into migration (tag, applied_at, beside) values ($1, $2, $3)', values);
    }
  });
}

async function applyTo(query: Query, place: string, tag: Tag, statements: string[]): Promise<void> {
  try {
    for (const sql of statements) await query(sql);
  } catch (error) {
    if (isGone(error) || isConflict(error)) throw error;
    throw new Fault('store_unavailable', `${place}: migration ${tag} failed; nothing was changed`, error);
  }
}

export async function appliedTo(query: Query, place: string): Promise<Applied[]> {
  const tables = (await query<{ name: string }>(TABLES)).map(({ name }) => name);
  if (tables.includes('migration') && tables.includes('chat')) {
    return query<Applied>(APPLIED);
  }
  if (tables.length === 0) return [];
  throw new Fault(
    'store_unavailable',
    `${place}: this is a database of another program (it has a table ${tables[0]}). Name an empty one in store.url`,
  );
}
