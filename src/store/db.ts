/**
 * The port on which every verb of the store is written, whatever database it runs on. A verb is a generator: it yields a
 * statement and is handed the answer, so that SQLite runs it in one synchronous pass and PostgreSQL statement by
 * statement. Only a database can answer, so a verb cannot wait for anything else in the middle of a transaction.
 *
 * One SQL text serves both databases: `@name` or `?` for parameters (booleans as 0 and 1, structured values as JSON
 * text, times in ms), and the few words of `sql.ts` for what they spell differently.
 */
import { setImmediate as nextPass } from 'node:timers/promises';
import type { Clock } from '../core/clock.js';
import type { Zone } from '../core/dates.js';
import type { Log } from '../core/log.js';
import type { Notices } from '../core/node.js';
import type { StoreReports } from './outage.js';

/** A statement that a verb asks for. `tell`: nobody looks at its answer, so nobody waits for it. */
export interface Ask {
  readonly kind: 'one' | 'all' | 'run' | 'tell';
  readonly sql: string;
  /** One object for named parameters, or a list for `?`. */
  readonly values: readonly unknown[];
}

/**
 * Work on the database that returns `T`. It may run more than once, so it must have no other effect. Of several
 * statements at a time, it is handed the answers in their order.
 */
export type Verb<T> = Generator<Ask | readonly Ask[], T, unknown>;

function asked(kind: Ask['kind'], sql: string, values: readonly unknown[]): Ask {
  return { kind, sql, values: values.every(isClean) ? values : values.map(cleaned) };
}

/** No text that a database cannot hold: PostgreSQL knows no U+0000, and neither knows half a surrogate pair. */
function cleaned(value: unknown): unknown {
  if (typeof value === 'string') return value.replaceAll('\0', '').toWellFormed();
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, cleaned(each)]));
}

function isClean(value: unknown): boolean {
  if (typeof value === 'string') return !value.includes('\0') && value.isWellFormed();
  if (typeof value !== 'object') return true;
  for (const name in value) if (!isClean(value[name as keyof typeof value])) return false;
  return true;
}

/** The first row; undefined if there is none. */
export function* one<Row>(sql: string, ...values: unknown[]): Verb<Row | undefined> {
  return (yield asked('one', sql, values)) as Row | undefined;
}

export function* all<Row>(sql: string, ...values: unknown[]): Verb<Row[]> {
  return (yield asked('all', sql, values)) as Row[];
}

/** Returns the number of rows changed. */
export function* run(sql: string, ...values: unknown[]): Verb<number> {
  return (yield asked('run', sql, values)) as number;
}

export function* tell(sql: string, ...values: unknown[]): Verb<void> {
  yield asked('tell', sql, values);
}

/** The first column of the first row. */
export function* value<T>(sql: string, ...values: unknown[]): Verb<T | undefined> {
  return first<T>((yield asked('one', sql, values)) as Record<string, T> | undefined);
}

/** The first column of each row. */
export function* column<T>(sql: string, ...values: unknown[]): Verb<T[]> {
  return ((yield asked('all', sql, values)) as Record<string, T>[]).map((row) => first<T>(row) as T);
}

/** The rows of queries that do not need each other's answers, in one exchange with a server. */
export function* together<Rows extends unknown[]>(
  queries: readonly string[],
  ...values: unknown[]
): Verb<{ [N in keyof Rows]: Rows[N][] }> {
  return (yield queries.map((sql) => asked('all', sql, values))) as { [N in keyof Rows]: Rows[N][] };
}

/** The verb for each item, one after the other. */
export function* each<Item, T>(items: Iterable<Item>, verb: (item: Item) => Verb<T>): Verb<T[]> {
  const found: T[] = [];
  for (const item of items) found.push(yield* verb(item));
  return found;
}

function first<T>(row: Record<string, T> | undefined): T | undefined {
  for (const name in row) return row[name];
  return undefined;
}

/**
 * Chats (or rooms of them) that a writing verb works on, words for what concerns all chats, or nothing, if each of its
 * statements is right by itself. Writers of the same take turns. SQLite has a single writer and ignores it.
 */
export type WorkedOn = string | readonly (string | null | undefined)[];

/** Pairing, approvals and aliases. */
export const ACCESS = 'access';
/** Turns and calls that wait for a result or a person. */
export const WAITS = 'waits';
export const JOBS = 'jobs';
/** Bounds, claims and keys of all tasks. */
export const TASKS = 'tasks';
/** Recovery and upkeep. */
export const UPKEEP = 'upkeep';

/** Read access, also beside a running gateway. */
export interface Reader {
  /** Statements may see different states of the database. For one statement, or where that does not matter. */
  look<T>(verb: () => Verb<T>): Promise<T>;
  /** All statements see the same state. */
  read<T>(verb: () => Verb<T>): Promise<T>;
}

export interface Database extends Reader {
  readonly clock: Clock;
  /** The time zone whose days usage is summed by. */
  readonly zone: Zone;
  readonly log: Log | undefined;
  readonly told: StoreReports | undefined;
  /** As `read`, but nothing with a lower number is committed afterwards: for cursors over ids of several chats. */
  settled<T>(verb: () => Verb<T>): Promise<T>;
  /** Atomic, and in the database when it resolves. */
  write<T>(of: WorkedOn, verb: () => Verb<T>): Promise<T>;
  /** Makes what was committed before `begin` survive a power cut; `done` resolves when it does. */
  readonly flush: { begin(): void; done(): Promise<void> };
  /**
   * Calls `changed` soon after another process has written, and after this one has written the table. Returns the
   * function that stops watching.
   */
  watch(changed: () => void, table?: Watched): () => void;
  readonly notices: Notices;
  /** Returns disk space that deleted rows held, a step at a time. True if there is more to return. */
  shrink(step: number): Promise<boolean>;
  /** Removes what deleted text left behind in the database's files. `whole`: also where rows have been moved. */
  scrub(whole: boolean): Promise<void>;
  /** Bytes of the database, and of them reusable. */
  size(): Promise<{ bytes: number; free: number }>;
  /** Copies everything into a new SQLite file, consistently and without blocking writers; leaves these tables empty. */
  copyTo(file: string, without: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

/** Waiting for more writes adds a little latency under load, and divides the number of transactions. */
const MOST_PASSES = 4;

/** Resolves when a pass of the event loop has added no further write. */
export async function gathered(waiting: () => number): Promise<void> {
  for (let seen = 0, pass = 0; waiting() > seen && pass < MOST_PASSES; pass++) {
    seen = waiting();
    await nextPass();
  }
}

/** The tables whose changes wake somebody. */
export type Watched = 'journal' | 'task';

/** Calls those who wait for changes by others, or of a table by this process: once for a burst, after its transaction. */
export function createWatchers(isOpen: () => boolean) {
  const watchers = {
    others: new Set<() => void>(),
    journal: new Set<() => void>(),
    task: new Set<() => void>(),
  };
  const due = new Set<keyof typeof watchers>();

  function tellAll(): void {
    const changes = [...due];
    due.clear();
    if (isOpen()) for (const change of changes) for (const watcher of watchers[change]) watcher();
  }

  return {
    watch(changed: () => void, table: keyof typeof watchers = 'others'): () => void {
      const watcher = () => changed();
      const among = [watchers.others, watchers[table]];
      for (const each of among) each.add(watcher);
      return () => {
        for (const each of among) each.delete(watcher);
      };
    },
    isWatched: () => watchers.others.size > 0,
    changed(change: keyof typeof watchers): void {
      if (due.size === 0) setImmediate(tellAll);
      due.add(change);
    },
  };
}

/** Runs a statement of PostgreSQL, with `$1` for parameters. */
export type Query = <Row extends object>(sql: string, values?: unknown[]) => Promise<Row[]>;

/** A PostgreSQL database. */
export interface Server {
  /** Its URL without user and password, for people. */
  readonly place: string;
  /** Any statement, with `$1` for parameters; for migrations, copies and checks. */
  readonly query: Query;
  /** Runs `work` in a transaction of `mode` (`isolation level …`), and again from its beginning if the connection broke. */
  transaction<T>(work: (query: Query) => Promise<T>, mode?: string): Promise<T>;
}
