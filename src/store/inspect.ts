/** Reads the store for `doctor`, `replay` and `export`, whether or not a gateway is running on it. */
import { existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import Sqlite from 'better-sqlite3';
import type { Clock } from '../core/clock.js';
import { Fault } from '../core/errors.js';
import type { Store } from '../core/store.js';
import { keepHandle } from '../core/v8.js';
import * as db from './db.js';
import { type Applied, appliedMigrations, appliedTo, isNewer, pendingMigrations } from './migrate.js';
import { type StorePlace, storeOn } from './open.js';
import { storeFault } from './sqlite/busy.js';
import { runVerb, statementsOf } from './sqlite/connection.js';

const WAIT_MS = 5_000;

export interface Inspected {
  /** The program with its version, and the file or the address without login. */
  name: string;
  place: string;
  /** Migrations that run at the next start. */
  pending: number;
  /** It was migrated by a newer version, beside which this one works. */
  newer: boolean;
  /** Replies and turns that need a person's attention. */
  parked: number;
  bytes: number;
  /** How far the server's clock is ahead of ours, and how many connections it has left. null: no server. */
  server: { aheadMs: number; free: number } | null;
  /** Names of the gateways that live on it; none where one cannot know. */
  living(): Promise<string[]>;
  /** Only its reads work. null while migrations are pending. */
  reads: Store | null;
  close(): Promise<void>;
}

/** null if there is no store yet. Throws Fault as opening it would. */
export function inspectStore(at: StorePlace, clock: Clock): Promise<Inspected | null> {
  return at.url === null ? inspectFile(at) : inspectServer(at, at.url, clock);
}

/** null if there is no store yet. Throws as above, and if migrations are pending. */
export async function withReads<T>(
  at: StorePlace,
  clock: Clock,
  look: (reads: Store) => Promise<T>,
): Promise<T | null> {
  const found = await inspectStore(at, clock);
  if (found === null) return null;
  try {
    if (found.reads !== null) return await look(found.reads);
    const what = `${found.place} is of an older version: start the gateway once, which brings it up to date`;
    throw new Fault('store_unavailable', what);
  } finally {
    await found.close();
  }
}

async function inspectFile({ file, migrationsFolder }: StorePlace): Promise<Inspected | null> {
  if (!existsSync(file)) return null;
  let raw: Sqlite.Database | undefined;
  const close = async () => void raw?.close();
  try {
    raw = keepHandle(new Sqlite(file, { readonly: true, timeout: WAIT_MS }));
    const statements = statementsOf(raw);
    const look = async <T>(verb: () => db.Verb<T>) => {
      try {
        return runVerb(statements, verb());
      } catch (error) {
        throw storeFault(error, file);
      }
    };
    const applied = appliedMigrations(statements, file);
    const sizes = [file, `${file}-wal`].map((each) => stat(each).catch(() => null));
    const bytes = (await Promise.all(sizes)).reduce((sum, found) => sum + (found?.size ?? 0), 0);
    const name = `SQLite ${await look(() => db.value<string>('select sqlite_version()'))}`;
    const opened = { look, read: look, settled: look } as db.Database;
    const found = { name, place: file, bytes, server: null, living: async () => [], close };
    return { ...found, ...(await stateOf(opened, file, migrationsFolder, applied)) };
  } catch (error) {
    await close();
    throw storeFault(error, file);
  }
}

const SERVER = `
  select split_part(current_setting('server_version'), ' ', 1) as version, pg_database_size(current_database()) as bytes,
    (extract(epoch from clock_timestamp()) * 1000)::bigint as now,
    current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int -
      (select count(*) from pg_stat_activity where backend_type = 'client backend') as free`;

async function inspectServer(at: StorePlace, url: string, clock: Clock): Promise<Inspected> {
  const { connectPostgres } = await import('./postgres/connection.js');
  const { nodesOn } = await import('./postgres/nodes.js');
  const opened = await connectPostgres({ ...at, url, clock });
  try {
    const before = clock.now();
    const [row] = await opened.query<{ version: string; bytes: number; now: number; free: number }>(SERVER);
    if (row === undefined) throw new Fault('internal', 'PostgreSQL gave no answer');
    const aheadMs = row.now - Math.round((before + clock.now()) / 2);
    const { place, close } = opened;
    const name = `PostgreSQL ${row.version}`;
    const found = { name, place, bytes: row.bytes, server: { aheadMs, free: row.free }, close };
    const applied = await appliedTo(opened.query, place);
    const state = await stateOf(opened, place, at.migrationsFolder, applied);
    // Before its migrations, there may be no table of them.
    const living = async () =>
      state.pending > 0 ? [] : (await nodesOn(opened).living()).map((node) => node.name);
    return { ...found, ...state, living };
  } catch (error) {
    await opened.close();
    throw error;
  }
}

/** Plain SQL: the tables may be of an older version, and only these columns are needed. */
const PARKED = `
  select (select count(*) from outbox where state = 'parked') + (select count(*) from turn where state = 'parked')`;

async function stateOf(opened: db.Database, place: string, migrationsFolder: string, applied: Applied[]) {
  const pending = pendingMigrations(place, migrationsFolder, applied).length;
  const parked = applied.length > 0 ? ((await opened.look(() => db.value<number>(PARKED))) ?? 0) : 0;
  const newer = isNewer(migrationsFolder, applied);
  return { pending, newer, parked, reads: pending > 0 ? null : storeOn(opened) };
}
