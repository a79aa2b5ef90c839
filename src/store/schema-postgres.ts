/**
 * PostgreSQL's tables, derived from SQLite's: integers and flags become bigint, and ids that SQLite numbers itself become
 * identities. drizzle-kit makes the migrations from them; the gateway does not load this file.
 */
import { is, SQL, sql } from 'drizzle-orm';
import * as postgres from 'drizzle-orm/pg-core';
import {
  getTableConfig,
  type IndexColumn,
  type SQLiteColumn,
  type SQLiteTable,
} from 'drizzle-orm/sqlite-core';
import * as schema from './schema.js';

/** The numbers of the journal's entries and of their changes. */
export const journalNumber = postgres.pgSequence('journal_number');

/** The token of each process' last write transaction: whether a commit took place whose answer was lost. */
export const writer = postgres.pgTable('writer', {
  id: postgres.text().primaryKey(),
  token: postgres.bigint({ mode: 'number' }).notNull(),
  at: postgres.bigint({ mode: 'number' }).notNull(),
});

/** Gateways that share the database, until they are counted as dead. Only a server has several. */
export const node = postgres.pgTable('node', {
  name: postgres.text().primaryKey(),
  token: postgres.text().notNull(),
  version: postgres.text().notNull(),
  since: postgres.bigint({ mode: 'number' }).notNull(),
  seen_at: postgres.bigint({ mode: 'number' }).notNull(),
  until: postgres.bigint({ mode: 'number' }).notNull(),
});

/** Held by a node until then. Rows stay, so that a fence never falls. */
export const lease = postgres.pgTable('lease', {
  name: postgres.text().primaryKey(),
  node: postgres.text().notNull(),
  token: postgres.text().notNull(),
  fence: postgres.bigint({ mode: 'number' }).notNull(),
  until: postgres.bigint({ mode: 'number' }).notNull(),
  /** The token of a node that holds fewer and asks for it. */
  asked_by: postgres.text(),
});

const tables: Record<string, postgres.PgTable> = Object.fromEntries(
  Object.entries(schema).map(([name, table]) => [name, derived(table)]),
);

// drizzle-kit sees only what has a name.
// biome-ignore format: a list
export const {
  alias, approval, archived, askedCall, channelState, chat, command, cursor, earlyResult, given, heard,
  job, jobRun, journal, leftAddress, message, offer, outbox, outsideLine, pairing, question, room,
  setting, shown, spent, step, task, taskEvent, taskMessage, turn, usage, version, view,
} = tables;

function derived(table: SQLiteTable): postgres.PgTable {
  const { name, columns, primaryKeys, indexes } = getTableConfig(table);
  const own = Object.fromEntries(columns.map((column) => [column.name, derivedColumn(column, name)]));
  return postgres.pgTable(name, own, (made) => {
    const here = (of: IndexColumn[]) => {
      const found: unknown[] = of.map((column) => (is(column, SQL) ? sql`(${column})` : made[column.name]));
      return found as [postgres.PgColumn];
    };
    return [
      ...primaryKeys.map((key) => postgres.primaryKey({ name: `${name}_pkey`, columns: here(key.columns) })),
      ...indexes.map(({ config }) => {
        const kind = config.unique ? postgres.uniqueIndex : postgres.index;
        const index = kind(config.name).on(...here(config.columns));
        return config.where ? index.where(config.where) : index;
      }),
    ];
  });
}

function derivedColumn(column: SQLiteColumn, table: string): postgres.PgColumnBuilderBase {
  const isNumber = column.getSQLType() === 'integer';
  const number = postgres.bigint({ mode: 'number' });
  // The program numbers the journal.
  if (isNumber && column.primary && table !== 'journal')
    return number.primaryKey().generatedByDefaultAsIdentity();
  const made = isNumber ? number : postgres.text();
  if (column.primary) made.primaryKey();
  if (column.notNull) made.notNull();
  if (column.default !== undefined)
    made.default(sql.raw(isNumber ? `${Number(column.default)}` : `'${column.default}'`));
  return made;
}
