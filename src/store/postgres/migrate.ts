/**
 * Migrates a PostgreSQL database when it is opened: all pending migrations in one transaction, by one process at a time.
 * Refuses databases of a newer version, and those of other programs.
 */
import { Fault } from '../../core/errors.js';
import type { Query } from '../copy.js';
import { CREATE_TABLE, pendingMigrations, sqlOf, type Tag } from '../migrate.js';
import type { PostgresDatabase } from './connection.js';
import { isConflict, isGone } from './faults.js';

/** Short, because others wait for whoever waits for a table; the transaction is then repeated. */
const LOCK_TIMEOUT = `set local lock_timeout = '2s'`;
const LOCK = `select pg_advisory_xact_lock(hashtextextended('migration', 0))`;
const TABLES = 'select tablename as name from pg_tables where schemaname = current_schema()';

export async function migratePostgres(database: PostgresDatabase, folder: string): Promise<void> {
  const { place, clock, log } = database;
  await database.transaction(async (query) => {
    await query(LOCK_TIMEOUT);
    await query(LOCK);
    const pending = pendingMigrations(place, folder, await appliedMigrations(query, place));
    if (pending.length === 0) return;
    log?.info({ place, migrations: pending }, 'migrating the database to this version');
    for (const tag of pending) {
      await apply(query, place, tag, [CREATE_TABLE, ...sqlOf(folder, tag).split('--> statement-breakpoint')]);
      await query('insert into migration (tag, applied_at) values ($1, $2)', [tag, clock.now()]);
    }
  });
}

async function apply(query: Query, place: string, tag: Tag, statements: string[]): Promise<void> {
  try {
    for (const sql of statements) await query(sql);
  } catch (error) {
    if (isGone(error) || isConflict(error)) throw error;
    throw new Fault('store_unavailable', `${place}: migration ${tag} failed; nothing was changed`, error);
  }
}

export async function appliedMigrations(query: Query, place: string): Promise<Tag[]> {
  const tables = (await query<{ name: string }>(TABLES)).map(({ name }) => name);
  if (tables.includes('migration') && tables.includes('chat')) {
    return (await query<{ tag: Tag }>('select tag from migration order by tag')).map(({ tag }) => tag);
  }
  if (tables.length === 0) return [];
  throw new Fault(
    'store_unavailable',
    `${place}: this is a database of another program (it has a table ${tables[0]}). Name an empty one in store.url`,
  );
}
