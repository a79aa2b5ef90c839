/**
 * Migrates a database when it is opened: all pending migrations in one transaction, after a backup copy. Refuses
 * databases of a newer version, and files that are not ours.
 */
import { readdir, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { Fault } from '../../core/errors.js';
import { keepHandle } from '../../core/v8.js';
import { CREATE_TABLE, pendingMigrations, sqlOf, type Tag } from '../migrate.js';
import { storeFault } from './busy.js';
import { type SqliteDatabase, type Statements, statementsOf } from './connection.js';

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
    for (const tag of pending) if (!done.includes(tag)) apply(db, folder, tag);
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

export function appliedMigrations(db: Statements, file: string): Tag[] {
  const tables = db.all<{ name: string }>(`select name from sqlite_master where type = 'table'`);
  if (tables.some(({ name }) => name === 'migration')) {
    return db.all<{ tag: Tag }>('select tag from migration order by tag').map(({ tag }) => tag);
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
