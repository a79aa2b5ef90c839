/** SQL helpers: column lists (space-separated, camelCase as in `schema.ts`), and batches of large tables. */

import type { SQLiteTable } from 'drizzle-orm/sqlite-core';
import * as db from './db.js';

/** A row as SQLite returns it: booleans are numbers, structured values are JSON. */
export type Row<Table extends SQLiteTable> = {
  [Column in keyof Table['$inferSelect']]: Plain<Table['$inferSelect'][Column]>;
};
type Plain<Value> = Value extends boolean ? number : Value extends string | number | null ? Value : string;

/** `room_id as roomId, text as text`; `of`: the table, for joins. */
export function columns(names: string, of?: string): string {
  const prefix = of === undefined ? '' : `${of}.`;
  return each(names, (name) => `${prefix}${column(name)} as ${name}`);
}

/** `insert into message (room_id, text) values (@roomId, @text)` */
export function insertInto(table: string, names: string): string {
  return `insert into ${table} (${each(names, column)}) values (${parameters(names)})`;
}

/** `insert into message (room_id, text) select @roomId, @text`, to be followed by a condition. */
export function insertIf(table: string, names: string): string {
  return `insert into ${table} (${each(names, column)}) select ${parameters(names)}`;
}

/** `insert into setting (key, value) values (@key, @value) on conflict (key) do update set value = excluded.value` */
export function upsert(table: string, key: string, names: string, added = ''): string {
  const insert = insertInto(table, `${key} ${added} ${names}`);
  return `${insert} on conflict (${each(key, column)}) do update set ${excluded(names)}`;
}

/** As `upsert`, but adds to the numbers of a row that is there. */
export function addTo(table: string, key: string, names: string): string {
  const sums = each(names, (name) => `${column(name)} = ${table}.${column(name)} + excluded.${column(name)}`);
  return `${insertInto(table, `${key} ${names}`)} on conflict (${each(key, column)}) do update set ${sums}`;
}

/** `text = @text, sent_at = @sentAt` */
export function assigned(names: string): string {
  return each(names, (name) => `${column(name)} = @${name}`);
}

/** `text = excluded.text, sent_at = excluded.sent_at` */
export function excluded(names: string): string {
  return each(names, (name) => `${column(name)} = excluded.${column(name)}`);
}

/** Values to bind: booleans as numbers, structured values as JSON, undefined as null. */
export function bound(values: object): Record<string, string | number | null> {
  const entries = Object.entries(values).map(([name, value]) => [name, toPlain(value)]);
  return Object.fromEntries(entries);
}

function toPlain(value: unknown): string | number | null {
  if (value === undefined || value === null) return null;
  if (typeof value === 'string' || typeof value === 'number') return value;
  return typeof value === 'boolean' ? Number(value) : JSON.stringify(value);
}

function parameters(names: string): string {
  return each(names, (name) => `@${name}`);
}

function each(names: string, as: (name: string) => string): string {
  return names.trim().split(/\s+/).map(as).join(', ');
}

function column(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** The key range of a batch: exclusive start, inclusive end. */
export interface Bounds {
  after: number | string;
  upTo: number | string;
}

/** A table and its key; `first` sorts before every key. */
export interface KeyPath {
  table: string;
  key: string;
  first: number | string;
}

/** The last key of the batch of `rows` rows after `after`; null after the last row. */
export function* batchEnd(
  { table, key }: KeyPath,
  rows: number,
  after: Bounds['after'],
): db.Verb<Bounds['upTo'] | null> {
  const sql = `
    select max(${key}) from (select ${key} from ${table} where ${key} > @after order by ${key} limit ${rows}) as batch`;
  return (yield* db.value<Bounds['upTo'] | null>(sql, { after })) ?? null;
}
