/**
 * Before a database from elsewhere is opened as ours: whether it is one, whole, and without code of somebody else's.
 * A trigger or a view runs with the statements of whoever has the database open.
 */
import Database from 'better-sqlite3';
import { Fault } from '../../core/errors.js';
import { storeFault } from './faults.js';
import { appliedMigrations, knownMigrations, refuseNewer } from './migrate.js';

interface Found {
  type: string;
  name: string;
  sql: string | null;
}

/** Throws Fault `store_unavailable`, and `store_newer` for one of a newer version. */
export function refuseForeign(file: string, migrationsFolder: string): void {
  const refuse = (why: string) => new Fault('store_unavailable', `${file} cannot be used: ${why}`);
  let raw: Database.Database | undefined;
  try {
    raw = new Database(file, { readonly: true, fileMustExist: true });
    raw.exec('pragma trusted_schema = off; pragma cell_size_check = on');
    const all = raw.prepare<[], Found>('select type, name, sql from sqlite_master').all();
    const code = all.find(
      ({ type, sql }) => type === 'trigger' || type === 'view' || /^\s*create\s+virtual/i.test(sql ?? ''),
    );
    if (code) throw refuse(`it holds a ${code.type} that is not ours (${JSON.stringify(code.name)})`);
    const applied = appliedMigrations({ raw, file });
    if (applied.length === 0) throw refuse('it is no database of coterie');
    refuseNewer(file, knownMigrations(migrationsFolder), applied);
    const [state] = raw.prepare<[], string>('pragma quick_check(1)').pluck().all();
    if (state !== 'ok') throw refuse(`it is damaged (${state})`);
  } catch (error) {
    throw storeFault(error, file);
  } finally {
    raw?.close();
  }
}
