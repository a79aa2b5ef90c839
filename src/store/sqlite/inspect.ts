/** For `doctor`: inspects a database file, whether or not a gateway is running on it. */
import { access } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import Database from 'better-sqlite3';
import { drizzle } from 'drizzle-orm/better-sqlite3';
import { channelStateReader } from './channel-state.js';
import { storeFault } from './faults.js';
import { appliedMigrations, knownMigrations, refuseNewer } from './migrate.js';
import { type Traces, traceStore } from './traces.js';
import { viewsOf } from './views.js';

const WAIT_MS = 5_000;

export type SqliteInspection =
  | { kind: 'missing' }
  /** `pending` migrations would run at the next start; `parked` replies and turns need a person's attention. */
  | { kind: 'found'; pending: number; parked: number };

/** Throws Fault `store_newer` and `store_unavailable`, as opening it would. */
export async function inspectSqlite(file: string, migrationsFolder: URL): Promise<SqliteInspection> {
  const exists = await access(file).then(
    () => true,
    () => false,
  );
  if (!exists) return { kind: 'missing' };
  let raw: Database.Database | undefined;
  try {
    raw = new Database(file, { readonly: true, timeout: WAIT_MS });
    const known = knownMigrations(fileURLToPath(migrationsFolder));
    const applied = appliedMigrations({ raw, file });
    refuseNewer(file, known, applied);
    const pending = known.filter((tag) => !applied.includes(tag)).length;
    return { kind: 'found', pending, parked: applied.length > 0 ? parkedIn(raw) : 0 };
  } catch (error) {
    throw storeFault(error, file);
  } finally {
    raw?.close();
  }
}

/** Traces messages beside a running gateway. Throws as above; the database must be up to date. */
export async function withTraces<T>(file: string, look: (traces: Traces) => Promise<T>): Promise<T> {
  let raw: Database.Database | undefined;
  try {
    raw = new Database(file, { readonly: true, timeout: WAIT_MS });
    const query = drizzle(raw);
    const read = async <R>(work: () => R) => work();
    return await look(traceStore({ raw, query, read }, viewsOf({ query, raw })));
  } catch (error) {
    throw storeFault(error, file);
  } finally {
    raw?.close();
  }
}

/** A channel's own values, read beside a running gateway. Empty if the database does not exist yet. */
export async function storedChannelState(
  file: string,
  migrationsFolder: URL,
  channel: string,
  names: string[],
): Promise<Map<string, string>> {
  const found = await inspectSqlite(file, migrationsFolder);
  if (found.kind === 'missing' || found.pending > 0) return new Map();
  let raw: Database.Database | undefined;
  try {
    raw = new Database(file, { readonly: true, timeout: WAIT_MS });
    const read = async <R>(work: () => R) => work();
    return await channelStateReader({ raw, read })(channel, names);
  } catch (error) {
    throw storeFault(error, file);
  } finally {
    raw?.close();
  }
}

/** A stored setting, read beside a running gateway. null if there is none, or no database yet. */
export async function storedSetting(
  file: string,
  migrationsFolder: URL,
  key: string,
): Promise<string | null> {
  const found = await inspectSqlite(file, migrationsFolder);
  if (found.kind === 'missing' || found.pending > 0) return null;
  return withFile(
    file,
    true,
    (raw) =>
      raw.prepare<[string], string>('select value from setting where key = ?').pluck().get(key) ?? null,
  );
}

/** The only change that is made here; no gateway may be running. Nothing is written if there is no database yet. */
export async function storeSetting(
  file: string,
  migrationsFolder: URL,
  key: string,
  value: string,
): Promise<void> {
  const found = await inspectSqlite(file, migrationsFolder);
  if (found.kind === 'missing' || found.pending > 0) return;
  withFile(file, false, (raw) =>
    raw
      .prepare<[string, string]>(
        'insert into setting (key, value) values (?, ?) on conflict do update set value = excluded.value',
      )
      .run(key, value),
  );
}

function withFile<T>(file: string, readonly: boolean, work: (raw: Database.Database) => T): T {
  let raw: Database.Database | undefined;
  try {
    raw = new Database(file, { readonly, timeout: WAIT_MS });
    return work(raw);
  } catch (error) {
    throw storeFault(error, file);
  } finally {
    raw?.close();
  }
}

/** Plain SQL, because the tables may be of an older version, and only these columns are needed. */
function parkedIn(raw: Database.Database): number {
  const count = raw.prepare<[], number>(
    `select (select count(*) from outbox where state = 'parked') + (select count(*) from turn where state = 'parked')`,
  );
  return count.pluck().get() as number;
}
