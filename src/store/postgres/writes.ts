/**
 * Writes on PostgreSQL. Those requested in consecutive passes of the event loop run as one transaction on one
 * connection, in step with each other, so that their statements share packets and one commit. Verbs that name the same
 * subject run one after the other. If one fails, all are rolled back and each runs again by itself.
 */
import type { Client, QueryConfig, QueryResult } from 'pg';
import type { Clock } from '../../core/clock.js';
import { Fault } from '../../core/errors.js';
import { type Ask, gathered, type Verb, type Watched, type WorkedOn } from '../db.js';
import { POSTGRES, spelled, watchedTable } from '../sql.js';
import { farewell } from './faults.js';

/** Rows of writers that have died are forgotten. */
const FORGET = 'delete from writer where at < $1';
const FORGOTTEN_AFTER_MS = 86_400_000;
/** With more subjects the whole store is locked instead: the server's table of locks is small. */
const MOST_LOCKS = 500;
/** The lock that writers share, and that `settled` reads have alone. */
const FEED = 33;

export const ALONE = `pg_advisory_xact_lock(${FEED})`;
/**
 * The first statement of a transaction. It leaves the transaction's number in the writer's row, the only way to learn the
 * outcome of a commit that was cut. And it locks the subjects in the order given, which is the same for all writers, so that
 * none waits for one that waits for it.
 */
const opening = (feed: string) => `
  with signed as (
    insert into writer (id, token, at) values ($1, $2, $3)
    on conflict (id) do update set at = excluded.at,
      token = case when writer.token < excluded.token then excluded.token end)
  select ${feed}, (select count(pg_advisory_xact_lock(hashtextextended(key, 0))) from unnest($4::text[]) as key)`;
const OPEN = opening(`pg_advisory_xact_lock_shared(${FEED})`);
const OPEN_ALONE = opening(ALONE);
/**
 * Waits while the server is ending that transaction. If it has not come to its signature yet, it fails there: the row then
 * has a higher token, and no null.
 */
const LEARN = `
  insert into writer (id, token, at) values ($1, $3, $4)
  on conflict (id) do update set at = excluded.at,
    token = case when writer.token = $2 then writer.token else excluded.token end
  returning token`;

interface QueuedWrite {
  subjects: string[];
  verb(): Verb<unknown>;
  resolve(value: never): void;
  reject(error: unknown): void;
}

interface Committed {
  values: unknown[];
  /** The watched tables that were written. */
  tables: ReadonlySet<Watched>;
}

/** The connection broke while a commit was under way: only the server knows its outcome. */
class UnknownCommit extends Error {
  constructor(
    readonly token: number,
    readonly outcome: Committed,
    cause: unknown,
  ) {
    super('the connection broke during a commit', { cause });
  }
}

/** The statements of a transaction share it. */
interface Course {
  changed(table: Watched): void;
  /** The first error of a statement. */
  failed?: unknown;
}

/** `telegram_1/7` is a room of `telegram_1`. */
function subjectsOf(of: WorkedOn): string[] {
  const all = typeof of === 'string' ? [of] : of;
  return all.flatMap((subject) => subject?.split('/')[0] ?? []);
}

/** Sends a statement. Those of one pass of the event loop leave together: a packet costs both ends more than most of them. */
export function send(client: Client, statement: QueryConfig): Promise<QueryResult> {
  const { stream } = client.connection;
  if (stream.writableCorked === 0) {
    stream.cork();
    setImmediate(() => stream.uncork());
  }
  return client.query(statement);
}

/** Runs a verb, statement by statement. */
export async function runVerb<T>(client: Client, verb: Verb<T>, course: Course): Promise<T> {
  for (let answer: unknown; ; ) {
    const { done, value } = verb.next(answer);
    if (done) return value;
    if (isSeveral(value)) answer = await Promise.all(value.map((each) => answerTo(client, each, course)));
    else if (value.kind !== 'tell') answer = await answerTo(client, value, course);
    else {
      answer = undefined;
      answerTo(client, value, course).catch((error) => {
        course.failed ??= error;
      });
    }
  }
}

const isSeveral = (asked: Ask | readonly Ask[]): asked is readonly Ask[] => Array.isArray(asked);

async function answerTo(client: Client, { kind, sql, values }: Ask, course: Course): Promise<unknown> {
  const statement = parse(sql);
  const { rows, rowCount } = await send(client, bind(statement, values));
  // A watcher that looks by a statement of its own would otherwise wake itself for ever.
  if (statement.table !== null && rowCount) course.changed(statement.table);
  return kind === 'all' ? rows : kind === 'one' ? rows[0] : (rowCount ?? 0);
}

/** Runs writes as one transaction of the writer. Throws what failed first, or `UnknownCommit`. */
async function transact(
  client: Client,
  writes: readonly QueuedWrite[],
  { writer, token, now }: { writer: string; token: number; now: number },
): Promise<Committed> {
  const tables = new Set<Watched>();
  const course: Course = { changed: (table) => tables.add(table) };
  const keys = [...new Set(writes.flatMap(({ subjects }) => subjects))].sort();
  const isAlone = keys.length > MOST_LOCKS;
  const tell = (name: string, text: string, values: unknown[]) =>
    send(client, { name, text, values }).catch((error) => {
      course.failed ??= error;
    });
  // At a higher level, a verb would see an earlier state than that under its locks.
  void tell('', 'begin isolation level read committed', []);
  const opened = [writer, token, now, isAlone ? [] : keys];
  void tell(isAlone ? 'open_alone' : 'open', isAlone ? OPEN_ALONE : OPEN, opened);
  const tails = new Map<string, Promise<unknown>>();
  const running = writes.map(({ subjects, verb }) => {
    const before = subjects.flatMap((subject) => tails.get(subject) ?? []);
    const run = () => runVerb(client, verb(), course);
    const done = (before.length === 0 ? run() : Promise.all(before).then(run)).catch((error) => {
      if (!(error instanceof Fault)) course.failed ??= error;
      throw error;
    });
    for (const subject of subjects) tails.set(subject, done);
    return done;
  });
  const ended = await Promise.allSettled(running);
  const broken = ended.find((each) => each.status === 'rejected');
  if (broken !== undefined) {
    await client.query('rollback').catch(() => {});
    // An earlier error is the cause of later ones.
    throw course.failed ?? broken.reason;
  }
  const values = ended.map((each) => (each.status === 'fulfilled' ? each.value : undefined));
  const outcome = { values, tables };
  const { command } = await client.query('commit').catch((error) => {
    throw new UnknownCommit(token, outcome, error);
  });
  // The server rolls back at the commit if a statement that nobody waited for has failed.
  if (command !== 'COMMIT') throw course.failed;
  return outcome;
}

/** Gathers writes, and gives them to `commit` together; if that fails, one by one. */
class WriteQueue {
  private waiting: QueuedWrite[] = [];
  private draining: Promise<void> | null = null;

  constructor(
    private readonly commit: (writes: readonly QueuedWrite[]) => Promise<unknown[]>,
    private readonly parted: () => void,
  ) {}

  add<T>(of: WorkedOn, verb: () => Verb<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.waiting.push({ subjects: subjectsOf(of), verb, resolve, reject });
      this.draining ??= this.drain();
    });
  }

  /** Resolves when all writes have ended. */
  async idle(): Promise<void> {
    await this.draining;
  }

  private async drain(): Promise<void> {
    while (this.waiting.length > 0) {
      await gathered(() => this.waiting.length);
      const batch = this.waiting;
      this.waiting = [];
      await this.run(batch);
    }
    // In the same pass as the last look: a write that is added later finds nobody draining.
    this.draining = null;
  }

  private async run(batch: QueuedWrite[]): Promise<void> {
    try {
      const values = await this.commit(batch);
      for (const [n, { resolve }] of batch.entries()) resolve(values[n] as never);
    } catch (error) {
      if (batch.length === 1 || (error instanceof Fault && error.code === 'store_unavailable')) {
        for (const { reject } of batch) reject(error);
      } else {
        this.parted();
        for (const write of batch) await this.run([write]);
      }
    }
  }
}

/** The writer of this process: its row in the table `writer`, and its queue. */
export function createWriter({
  clock,
  changed,
  wrote,
  parted,
  lend,
  patiently,
}: {
  clock: Clock;
  /** A watched table was written. */
  changed(table: Watched): void;
  /** Something was committed. */
  wrote(): void;
  /** One of several writes failed, so each runs again by itself. */
  parted(): void;
  lend<T>(work: (client: Client) => Promise<T>): Promise<T>;
  /** Repeats work while the database is away. */
  patiently<T>(work: () => Promise<T>): Promise<T>;
}) {
  const writer = `${process.pid}-${clock.now()}-${Math.random().toString(36).slice(2)}`;
  let token = 0;

  async function commit(client: Client, writes: readonly QueuedWrite[]): Promise<Committed> {
    if (token === 0) await client.query(FORGET, [clock.now() - FORGOTTEN_AFTER_MS]);
    return transact(client, writes, { writer, token: ++token, now: clock.now() });
  }

  const queue = new WriteQueue(async (writes) => {
    let unknown: UnknownCommit | null = null;
    const { values, tables } = await patiently(() =>
      lend(async (client): Promise<Committed> => {
        if (unknown !== null) {
          const asked = [writer, unknown.token, ++token, clock.now()];
          const { rows } = await client.query<{ token: number }>(LEARN, asked);
          if (rows[0]?.token === unknown.token) return unknown.outcome;
        }
        unknown = null;
        return await commit(client, writes).catch((error) => {
          if (!(error instanceof UnknownCommit)) throw error;
          unknown = error;
          throw error.cause;
        });
      }),
    );
    // Not before the commit: they look for what was written.
    for (const table of tables) changed(table);
    wrote();
    return values;
  }, parted);

  return {
    add: <T>(of: WorkedOn, verb: () => Verb<T>) => queue.add(of, verb),
    /** Resolves when all writes have ended. */
    async close(): Promise<void> {
      await queue.idle();
      if (token === 0) return;
      const leaving = lend((client) => client.query('delete from writer where id = $1', [writer]));
      await farewell(leaving, clock);
    },
  };
}

// ── Statements as PostgreSQL takes them ──────────────────────────────────────────────────────────────────────

/** A statement with its values, as `pg` takes it: `$1` for parameters with their types, and quoted aliases. */
interface Bound {
  name: string;
  text: string;
  values: (string | number | null)[];
}

interface Parsed {
  /** Text, and between its pieces the places of parameters. */
  pieces: (string | number)[];
  /** The parameters' names; those of `?` are their places. */
  names: string[];
  table: Watched | null;
  /** By the types of the values: PostgreSQL needs to know them. */
  variants: Map<string, { name: string; text: string }>;
}

/** Strings, quoted names, parameters, and names in camelCase, which lose their capitals unless they are quoted. */
const TOKENS = /'(?:[^']|'')*'|"[^"]*"|@(\w+)|\?|\b([a-z]+[A-Z]\w*)\b/g;

const parsed = new Map<string, Parsed>();
let named = 0;

function parse(sql: string): Parsed {
  const known = parsed.get(sql);
  if (known !== undefined) return known;
  const text = spelled(sql, POSTGRES);
  const names: string[] = [];
  const pieces: Parsed['pieces'] = [''];
  const add = (piece: string) => {
    pieces[pieces.length - 1] += piece;
  };
  let at = 0;
  for (const { 0: token, 1: parameter, 2: camel, index } of text.matchAll(TOKENS)) {
    add(text.slice(at, index));
    at = index + token.length;
    if (parameter === undefined && token !== '?') {
      add(camel === undefined ? token : `"${camel}"`);
      continue;
    }
    const name = parameter ?? String(names.length);
    const place = names.indexOf(name);
    pieces.push(place < 0 ? names.push(name) - 1 : place, '');
  }
  add(text.slice(at));
  const statement = { pieces, names, table: watchedTable(sql), variants: new Map() };
  parsed.set(sql, statement);
  return statement;
}

function bind({ pieces, names, variants }: Parsed, given: readonly unknown[]): Bound {
  const [first] = given;
  const isNamed = typeof first === 'object' && first !== null;
  const from = (isNamed ? first : given) as Record<string, unknown>;
  const values = names.map((name) => plain(from[name]));
  const casts = values.map(castOf);
  const key = casts.join();
  let variant = variants.get(key);
  if (variant === undefined) {
    const text = pieces
      .map((piece) => (typeof piece === 'string' ? piece : `$${piece + 1}${casts[piece]}`))
      .join('');
    variant = { name: `coterie_${++named}`, text };
    variants.set(key, variant);
  }
  return { ...variant, values };
}

function plain(value: unknown): string | number | null {
  if (typeof value === 'boolean') return Number(value);
  return typeof value === 'string' || typeof value === 'number' ? value : null;
}

/** A null has the type of its place. */
function castOf(value: string | number | null): string {
  if (value === null) return '';
  if (typeof value === 'string') return '::text';
  return Number.isInteger(value) ? '::bigint' : '::float8';
}
