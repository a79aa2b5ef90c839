/**
 * The columns of tables in SQL: camelCase in the code, as in `schema.ts`, and snake_case in the database. Lists of
 * columns are written once, as names with spaces between them.
 */
import type { SQLiteTable } from 'drizzle-orm/sqlite-core';

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
  const entries = Object.entries(values).map(([name, value]) => [name, plain(value)]);
  return Object.fromEntries(entries);
}

function plain(value: unknown): string | number | null {
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
