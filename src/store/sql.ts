/**
 * The SQL of the verbs: words that SQLite and PostgreSQL spell differently, column lists (space-separated, camelCase as in
 * `schema.ts`), and batches of large tables.
 */
import type { SQLiteTable } from 'drizzle-orm/sqlite-core';
import * as db from './db.js';

/** A row as SQLite returns it: booleans are numbers, structured values are JSON. */
export type Row<Table extends SQLiteTable> = {
  [Column in keyof Table['$inferSelect']]: Plain<Table['$inferSelect'][Column]>;
};
type Plain<Value> = Value extends boolean ? number : Value extends string | number | null ? Value : string;

/** The columns of a list of names. */
export type Some<Table extends SQLiteTable, Names extends string> = {
  [Name in Words<Names> & keyof Row<Table>]: Row<Table>[Name];
};
type Words<Names extends string> = Names extends `${infer First}${' ' | '\n'}${infer Rest}`
  ? First | Words<Rest>
  : Names;

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
  const plain: Record<string, string | number | null> = {};
  for (const [name, value] of Object.entries(values)) plain[name] = toPlain(value);
  return plain;
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

// ── Words of the dialects ─────────────────────────────────────────────────────────────────────────────────────

// A statement writes such a word like a function, with plain arguments (`number_in(id, @ids)`); each driver spells it when
// it prepares the statement.
type Word = (...args: string[]) => string;

/** The spelling of every word; a dialect that lacks one does not compile. */
export interface Dialect {
  /** `number_in(id, @ids)`: the column is one of a JSON list of numbers. */
  number_in: Word;
  /** `text_in(name, @names)`: the column is one of a JSON list of texts. */
  text_in: Word;
  /** `channel_in(chat_id, @channels)`: the channel of an id, before its first `_`, is one of a JSON list. */
  channel_in: Word;
  /** `alone(chat_id)`: the column, but the planner does not use an index on it. */
  alone: Word;
  /** `larger(a, b)`: the larger of two numbers, neither null. */
  larger: Word;
  /** `smaller(a, b)`. */
  smaller: Word;
  /** `locked()`, at the end of a select: nobody else changes its rows until the transaction ends. */
  locked: Word;
  /** `next_change()`: a number for the journal higher than all before; `next_change(n)`: for the n-th row of several. */
  next_change: Word;
  /** `last_change()`: the highest such number. */
  last_change: Word;
}

const NEWEST = `max(coalesce((select max(n) from journal), 0),
  coalesce((select max(changed) from journal where changed <> n), 0))`;

export const SQLITE: Dialect = {
  number_in: (column, list) => `${column} in (select value from json_each(${list}))`,
  text_in: (column, list) => `${column} in (select value from json_each(${list}))`,
  channel_in: (id, list) =>
    `substr(${id}, 1, instr(${id}, '_') - 1) in (select value from json_each(${list}))`,
  alone: (column) => `+${column}`,
  larger: (a, b) => `max(${a}, ${b})`,
  smaller: (a, b) => `min(${a}, ${b})`,
  locked: () => '',
  next_change: (place = '1') => `(${NEWEST} + ${place})`,
  last_change: () => NEWEST,
};

export const POSTGRES: Dialect = {
  // As an array, so that an index on the column serves.
  number_in: (column, list) =>
    `${column} = any (array(select item::bigint from json_array_elements_text((${list})::json) as item))`,
  text_in: (column, list) =>
    `${column} = any (array(select item from json_array_elements_text((${list})::json) as item))`,
  channel_in: (id, list) => `split_part(${id}, '_', 1) in (select json_array_elements_text((${list})::json))`,
  alone: (column) => column,
  larger: (a, b) => `greatest(${a}, ${b})`,
  smaller: (a, b) => `least(${a}, ${b})`,
  locked: () => 'for update',
  next_change: () => `nextval('journal_number')`,
  last_change: () => `(select last_value from journal_number)`,
};

const WORDS = new RegExp(`\\b(${Object.keys(SQLITE).join('|')})\\(([^()]*)\\)`, 'g');

/** The statement in a dialect. */
export function spelled(sql: string, dialect: Dialect): string {
  return sql.replaceAll(WORDS, (_, word: keyof Dialect, args: string) => {
    const given = args.trim() === '' ? [] : args.split(',').map((arg) => arg.trim());
    return dialect[word](...given);
  });
}

/** The table whose watchers a statement wakes. */
export function watchedTable(sql: string): db.Watched | null {
  const table = /^\s*(?:insert\s+into|update|delete\s+from)\s+(\w+)/i.exec(sql)?.[1];
  if (table === 'journal') return 'journal';
  return ['task', 'task_event', 'task_message', 'asked_call'].includes(table ?? '') ? 'task' : null;
}
