/**
 * The store on PostgreSQL 15 or newer. One connection writes (`writes.ts`), one serves the single statements of
 * reads, the others those that need a snapshot; one more listens. A database that is away is waited for.
 */
import { type Client, type ClientConfig, Pool, type PoolClient, types } from 'pg';
import type { Clock } from '../../core/clock.js';
import { createZone, type Zone } from '../../core/dates.js';
import { Fault } from '../../core/errors.js';
import type { Log } from '../../core/log.js';
import { backoff } from '../../core/retry.js';
import { createWatchers, type Database, type Server } from '../db.js';
import { createOutage, type StoreReports } from '../outage.js';
import {
  configurationFault,
  farewell,
  isConflict,
  isGone,
  isOfDeadConnection,
  poolerFault,
  retryReason,
  storeFault,
} from './faults.js';
import { createListener } from './listener.js';
import { ALONE, createWriter, runVerb, send } from './writes.js';

export interface PostgresDatabase extends Database, Server {
  /** A transaction within the limits of every connection: while this process stands still, it stops others not for long. */
  briefly<T>(work: (query: Server['query']) => Promise<T>): Promise<T>;
}

export interface PostgresOptions {
  url: string;
  /** Besides the one that listens; at least 3. Default: 8. */
  connections?: number;
  /** How long a start, or a verb, waits for a database that is away. Default: 30 s. */
  waitMs?: number;
  /** How long a statement's answer is waited for, longer than the server works on it. Default: 70 s. */
  answerMs?: number;
  /** How long this process may stand still in a transaction before the server ends it. Default: 5 s. */
  stillMs?: number;
  /** drizzle-kit's migrations for SQLite, for copies (`copyTo`). */
  sqliteMigrations: string;
  clock: Clock;
  zone?: Zone | undefined;
  log?: Log | undefined;
  told?: StoreReports | undefined;
  /** Called once, when the database was away for longer than that. */
  onLost?: ((fault: Fault) => void) | undefined;
}

const OLDEST = 150_000;
const CONNECT_MS = 5_000;
/** A gateway that stands still in a transaction loses it, so that others need not wait for it. */
const STILL_MS = 5_000;
const LOCK_MS = 10_000;
const STATEMENT_MS = 60_000;
/** Finds a connection whose other end is gone without a word. */
const PROBE_MS = 10_000;
/**
 * A connection keeps the plans of its statements. One made while a table is almost empty reads it whole, and goes on to if
 * nothing has counted its rows since, though each statement of a turn has its index.
 */
const PLAN = 'set enable_seqscan = off; set jit = off';
/** A timer's longest time. */
const NEVER_MS = 2 ** 31 - 1;

const CHECK = `
  select current_setting('server_version_num')::int as version, pg_is_in_recovery() as "isReplica",
    current_setting('server_encoding') as encoding, current_setting('transaction_read_only') = 'on' as "isReadOnly",
    (select setting from pg_settings where name = 'idle_in_transaction_session_timeout') as "stillMs",
    'B' < 'a' and '-' < '.' and '/' < '0' and '~' < 'é' as "isByBytes"`;
type Check = Record<'version' | 'isReplica' | 'isReadOnly' | 'isByBytes', number> &
  Record<'encoding' | 'stillMs', string>;

/** Throws Fault `configuration` for a database that cannot serve, `store_unavailable` for one that stays away. */
export async function connectPostgres(options: PostgresOptions): Promise<PostgresDatabase> {
  const { clock, zone = createZone('UTC'), log, stillMs = STILL_MS } = options;
  let isReady = false;
  const { onLost: told } = options;
  const onLost = told && ((fault: Fault) => isReady && told(fault));
  const { place, lend, transaction, patiently, ...access } = accessTo({ ...options, onLost });
  try {
    await patiently(() => lend((client) => check(client, place, stillMs)));
    isReady = true;
  } catch (error) {
    await access.close();
    throw configurationFault(error instanceof Fault ? error.cause : error, place) ?? error;
  }
  const own = createWatchers(access.isOpen);
  const listener = createListener({
    ...{ settings: settingsOf(options), clock, isOpen: access.isOpen, watchers: own },
    query: (sql, values) => lend((client) => client.query(sql, values)),
  });
  const parted = () => options.told?.metrics.count('store_retries_total', { reason: 'batch' });
  const { wrote } = listener;
  const writer = createWriter({ clock, changed: own.changed, wrote, parted, lend, patiently });
  // Neither changes anything, so nobody is told.
  const reading = { changed: () => {} };
  const queried = async <Row extends object>(
    client: Client,
    sql: string,
    values: unknown[],
    limit: { query_timeout?: number } = {},
  ) => (await client.query<Row>({ text: sql, values, ...limit })).rows;

  const database: PostgresDatabase = {
    place,
    clock,
    zone,
    log,
    told: options.told,
    look: (verb) => patiently(() => access.sharing((client) => runVerb(client, verb(), reading))),
    read: (verb) => transaction(SNAPSHOT, (client) => runVerb(client, verb(), reading)),
    // Each statement sees what was committed before it, and while this holds the lock nothing else is.
    settled: (verb) =>
      transaction('isolation level read committed read only', async (client) => {
        await client.query(`select ${ALONE}`);
        return runVerb(client, verb(), reading);
      }),
    write: (of, verb) => writer.add(of, verb),
    // A commit is on disk when it resolves.
    flush: { begin() {}, done: async () => {} },
    watch(changed, table) {
      const end = own.watch(changed, table);
      listener.listen();
      return end;
    },
    notices: listener.notices,
    // The server's autovacuum reuses the space of deleted rows.
    shrink: async () => false,
    scrub: async () => {},
    size: async () => ({ bytes: (await database.query<{ bytes: number }>(SIZE))[0]?.bytes ?? 0, free: 0 }),
    async copyTo(file, without) {
      const { copyToSqlite } = await import('../copy.js');
      await copyToSqlite(database, file, without, options.sqliteMigrations);
    },
    query: <Row extends object>(sql: string, values: unknown[] = []) =>
      patiently(() => lend((client) => queried<Row>(client, sql, values))),
    transaction: (work, mode = '') =>
      transaction(mode, async (client) => {
        await client.query('set local statement_timeout = 0');
        await client.query('set local idle_in_transaction_session_timeout = 0');
        return work((sql, values = []) => queried(client, sql, values, { query_timeout: NEVER_MS }));
      }),
    briefly: (work) => transaction('', (client) => work((sql, values = []) => queried(client, sql, values))),
    async close() {
      if (!access.isOpen()) return;
      access.beginEnd();
      await writer.close();
      await listener.close();
      await access.close();
    },
  };
  return database;
}

const SIZE = 'select pg_database_size(current_database()) as bytes';
const SNAPSHOT = 'isolation level repeatable read read only';

/** Patience with a database that is away, until the store is closed. */
function patienceWith({ waitMs = 30_000, clock, log, told, onLost }: PostgresOptions, place: string) {
  let isOpen = true;
  let isEnding = false;
  let isLost = false;
  const outage = told?.outage ?? createOutage(clock, log);
  return {
    isOpen: () => isOpen,
    /** From now on a database that is away is not waited for; work that is under way comes to its end. */
    beginEnd() {
      isEnding = true;
    },
    end() {
      isOpen = false;
    },
    /** Repeats `work` while the database is away, or another transaction is in the way. */
    async patiently<T>(work: () => Promise<T>): Promise<T> {
      const giveUpAt = clock.now() + waitMs;
      for (let tries = 1; ; tries++) {
        if (!isOpen) throw new Fault('store_unavailable', `${place}: the store was closed`);
        const known = outage.noted();
        try {
          const result = await work();
          outage.over(place, known);
          isLost = false;
          return result;
        } catch (error) {
          if (!isGone(error) && !isConflict(error)) throw storeFault(error, place);
          if (isGone(error) && !isOfDeadConnection(error)) outage.note(error, place);
          if (clock.now() < giveUpAt && !isEnding && !isLost) {
            told?.metrics.count('store_retries_total', { reason: retryReason(error) });
            await clock.sleep(backoff(tries, isGone(error) ? 50 : 2, 1_000, Math.random));
            continue;
          }
          const fault = storeFault(error, place);
          if (onLost && isGone(error) && fault instanceof Fault && !isEnding && !isLost) {
            isLost = true;
            onLost(fault);
          }
          throw fault;
        }
      }
    },
  };
}

function accessTo(options: PostgresOptions) {
  const { url, connections = 8, clock } = options;
  const place = placeOf(url);
  const pool = poolOf(options, connections);
  const { patiently, isOpen, beginEnd, end } = patienceWith(options, place);
  let shared: Promise<PoolClient> | null = null;

  /** A connection for `work` alone. */
  async function lend<T>(work: (client: Client) => Promise<T>): Promise<T> {
    const client = await pool.connect();
    let broken = false;
    try {
      return await work(client);
    } catch (error) {
      // After an error of the server the library takes statements for prepared that are not.
      broken = !(error instanceof Fault);
      throw error;
    } finally {
      client.release(broken);
    }
  }

  return {
    place,
    patiently,
    lend,
    isOpen,
    beginEnd,
    /** A connection that single statements share, with their packets. */
    async sharing<T>(work: (client: Client) => Promise<T>): Promise<T> {
      shared ??= pool.connect();
      const mine = shared;
      try {
        return await work(await mine);
      } catch (error) {
        // As above; and a connection that could not be made is tried anew.
        if (!(error instanceof Fault) && shared === mine) {
          shared = null;
          await mine.then((client) => client.release(true)).catch(() => {});
        }
        throw error;
      }
    },
    transaction: <T>(mode: string, work: (client: Client) => Promise<T>) =>
      patiently(() => lend((client) => inTransaction(client, mode, work))),
    async close() {
      end();
      if (shared !== null) await shared.then((client) => client.release()).catch(() => {});
      await farewell(pool.end(), clock);
    },
  };
}

/** Of every connection. */
function settingsOf({ url, answerMs = STATEMENT_MS + 10_000 }: PostgresOptions): ClientConfig {
  const patience = { connectionTimeoutMillis: CONNECT_MS, query_timeout: answerMs };
  return { connectionString: url, keepAlive: true, keepAliveInitialDelayMillis: PROBE_MS, ...patience };
}

/** Flags are 0 and 1, and all numbers JavaScript's: ids and times stay below 2^53. */
const TYPES = {
  getTypeParser(oid: number, format?: 'text' | 'binary') {
    if (oid === types.builtins.BOOL) return (value: string) => (value === 't' ? 1 : 0);
    if (oid === types.builtins.INT8 || oid === types.builtins.NUMERIC) return Number;
    return types.getTypeParser(oid, format as 'text');
  },
};

function poolOf(options: PostgresOptions, connections: number): Pool {
  const pool = new Pool({
    ...settingsOf(options),
    application_name: 'coterie',
    max: connections,
    pipeline: true,
    types: TYPES,
    idleTimeoutMillis: 0,
    idle_in_transaction_session_timeout: options.stillMs ?? STILL_MS,
    lock_timeout: LOCK_MS,
    statement_timeout: STATEMENT_MS,
  });
  // A connection that breaks while nobody uses it; whoever uses one gets the error from its query.
  pool.on('error', () => {});
  pool.on('connect', (client) => {
    client.on('error', () => {});
    // It fails only with its connection, which the next statement tells.
    client.query(PLAN).catch(() => {});
  });
  return pool;
}

async function inTransaction<T>(
  client: Client,
  mode: string,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const begun = send(client, { text: `begin ${mode}` });
  try {
    // Its first statement leaves with the beginning.
    const [result] = await Promise.all([work(client), begun]);
    await client.query('commit');
    return result;
  } catch (error) {
    await client.query('rollback').catch(() => {});
    throw error;
  }
}

async function check(client: Client, place: string, stillMs: number): Promise<void> {
  const { rows } = await client.query<Check>(CHECK);
  const [found] = rows;
  const refuse = (why: string) => new Fault('configuration', `store.url (${place}): ${why}`);
  if (found === undefined || found.version < OLDEST) throw refuse('PostgreSQL 15 or newer is needed');
  if (found.isReplica === 1) throw refuse('this is a replica. Name the primary server');
  if (found.isReadOnly === 1) throw refuse('the database is read-only (default_transaction_read_only)');
  if (found.encoding !== 'UTF8')
    throw refuse(`the database must have the encoding UTF8, not ${found.encoding}`);
  if (found.isByBytes !== 1) {
    throw refuse(
      `texts must be compared by bytes: create the database with template template0 lc_collate 'C'`,
    );
  }
  if (found.stillMs !== String(stillMs)) throw poolerFault(place);
}

/** Host, port and database of a URL; never its user or password. */
export function placeOf(url: string): string {
  const { host, pathname, searchParams } = new URL(url);
  const where = searchParams.get('host') ?? host;
  return `postgres://${where}${pathname}`;
}
