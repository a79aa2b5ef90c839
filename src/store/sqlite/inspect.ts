/** For `doctor`: what a database file is, without changing it, whether or not a gateway runs on it. */
import { access } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import Database from 'better-sqlite3';
import { storeFault } from './faults.js';
import { appliedMigrations, knownMigrations, refuseNewer } from './migrate.js';

const WAIT_MS = 5_000;

export type SqliteInspection =
  | { kind: 'missing' }
  /** `pending` migrations would run at the next start; `parked` replies and turns wait for a person. */
  | { kind: 'found'; pending: number; parked: number };

/** Throws Fault `store_newer` and `store_unavailable` as opening it would. */
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

/** In plain SQL: the tables may be those of an older version, of which only these columns are needed. */
function parkedIn(raw: Database.Database): number {
  const count = raw.prepare<[], number>(
    `select (select count(*) from outbox where state = 'parked') + (select count(*) from turn where state = 'parked')`,
  );
  return count.pluck().get() as number;
}
