/**
 * The columns of tables in SQL: camelCase in the code, as in `schema.ts`, and snake_case in the database. Lists of
 * columns are written once, as names with spaces between them.
 */

import { setImmediate as nextPass } from 'node:timers/promises';
import type { Statement } from 'better-sqlite3';
import type { SQLiteTable } from 'drizzle-orm/sqlite-core';
import type { Connection } from './connection.js';

/** A row as SQLite returns it: a flag is a number, and whatever has a structure is JSON. */
export type Row<Table extends SQLiteTable> = {
  [Column in keyof Table['$inferSelect']]: Plain<Table['$inferSelect'][Column]>;
};
type Plain<Value> = Value extends boolean ? number : Value extends string | number | null ? Value : string;

/** `room_id as roomId, text as text`; `of`: the table, where several have such a column. */
export function columns(names: string, of?: string): string {
  const prefix = of === undefined ? '' : `${of}.`;
  return each(names, (name) => `${prefix}${column(name)} as ${name}`);
}

/** `room_id, text` */
export function listed(names: string): string {
  return each(names, column);
}

/** `value->>'roomId', value->>'text'`: from the objects of a `json_each`. */
export function fromJson(names: string): string {
  return each(names, (name) => `value->>'${name}'`);
}

/** `insert into message (room_id, text) values (@roomId, @text)` */
export function insertInto(table: string, names: string): string {
  return `insert into ${table} (${each(names, column)}) values (${parameters(names)})`;
}

/** `insert into message (room_id, text) select @roomId, @text`, to be followed by a condition. */
export function insertIf(table: string, names: string): string {
  return `insert into ${table} (${each(names, column)}) select ${parameters(names)}`;
}

/** `text = @text, sent_at = @sentAt` */
export function assigned(names: string): string {
  return each(names, (name) => `${column(name)} = @${name}`);
}

/** `text = excluded.text, sent_at = excluded.sent_at` */
export function excluded(names: string): string {
  return each(names, (name) => `${column(name)} = excluded.${column(name)}`);
}

/** Values as SQLite takes them: a flag as a number, what has a structure as JSON, and null for what is left out. */
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

// Large tables are walked through in strides along an ascending key, so that other work runs in between.

/** The rows of a stride: after one key, up to another. */
interface Bounds {
  after: number | string;
  upTo: number | string;
}

/** A table and its key; `first` comes before every key. */
export interface KeyPath {
  table: string;
  key: string;
  first: number | string;
}

/** Reads the key with which the stride `@after` ends; null behind the last row. */
export function batchEnd(
  raw: Connection['raw'],
  { table, key }: KeyPath,
  rows: number,
): Statement<[object], number | string | null> {
  return raw
    .prepare<[object], number | string | null>(`
      select max(${key}) from (select ${key} from ${table} where ${key} > @after order by ${key} limit ${rows})`)
    .pluck();
}

/** A walk removes or changes at most `most` rows; fewer when it has come to the end. */
export type Walk<Ask> = (ask: Ask & { most: number }) => Promise<number>;

/** The number of rows examined before other work may run. */
const BATCH = 2_000;

/** Each call goes on where the one before stopped. `work` returns how many of at most `most` rows it has changed. */
export function walkOf<Ask extends object>(
  { raw, withBusyRetry: patiently, write }: Connection,
  path: KeyPath,
  {
    work,
    isDone = () => false,
    single,
  }: {
    work(ask: Ask & Bounds & { most: number }): number;
    /** Nothing behind this key needs to be looked at. */
    isDone?(ask: Ask & Pick<Bounds, 'after'>): boolean;
    /** `work` is one statement. */
    single?: 'single';
  },
): Walk<Ask> {
  const next = batchEnd(raw, path, BATCH);
  let after = path.first;
  return async (ask) => {
    let changed = 0;
    while (changed < ask.most) {
      const upTo = await patiently(() => (isDone({ ...ask, after }) ? null : (next.get({ after }) ?? null)));
      if (upTo === null) {
        after = path.first;
        break;
      }
      const most = ask.most - changed;
      const now = await write(() => work({ ...ask, after, upTo, most }), single);
      changed += now;
      // Otherwise there may be more in this stride.
      if (now < most) after = upTo;
      await nextPass();
    }
    return changed;
  };
}
