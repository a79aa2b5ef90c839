/**
 * The words that SQLite and PostgreSQL spell differently. A statement writes such a word like a function, with plain
 * arguments (`number_in(id, @ids)`), and each driver spells it when it prepares the statement.
 */
import type { Watched } from './db.js';

export type Word = (...args: string[]) => string;

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
export function watchedTable(sql: string): Watched | null {
  const table = /^\s*(?:insert\s+into|update|delete\s+from)\s+(\w+)/i.exec(sql)?.[1];
  if (table === 'journal') return 'journal';
  return ['task', 'task_event', 'task_message', 'asked_call'].includes(table ?? '') ? 'task' : null;
}
