/** `coterie migrate-store`: copies the store from SQLite into a PostgreSQL database, and compares the two. */
import { resolve } from 'node:path';
import { openAudit } from './audit-start.js';
import { BY_OPERATOR, commandConfig, commandLog, say } from './command.js';
import { storeAddress } from './config-values.js';
import { systemClock } from './core/clock.js';
import { Fault } from './core/errors.js';
import { refuseLiving } from './nodes.js';
import { enterStopped, storeOf } from './paths.js';
import { userName } from './platforms.js';
import * as copy from './store/copy.js';
import type { Server } from './store/db.js';
import { withReads } from './store/inspect.js';
import { refuseForeign } from './store/migrate.js';
import { openServer, type StorePlace } from './store/open.js';

export interface MigrateOptions {
  to: string;
  from?: string;
  resume?: true;
}

export async function migrateStore(configFile: string | undefined, options: MigrateOptions): Promise<void> {
  const { config } = await commandConfig(configFile);
  const url = storeAddress().safeParse(options.to);
  // Without the given address, which may hold a password.
  if (!url.success) throw new Fault('configuration', `--to: ${url.error.issues[0]?.message}`);
  const log = commandLog(config);
  const locks = await enterStopped(config, log, 'move its store');
  try {
    const source = storeOf({ ...config, store: { ...config.store, url: null } });
    if (options.from !== undefined) source.file = resolve(options.from);
    await refuseSource(source);
    const to = storeOf({ ...config, store: { ...config.store, url: url.data } });
    await refuseLiving(to, log, 'move a store there');
    const target = await openServer(to, { clock: systemClock, log });
    try {
      // The copy holds the logins of platforms, so it must be in the audit log.
      const what = `a copy of ${source.file} to ${target.place}, by the user ${userName()}`;
      await openAudit(config, log).record({ ...BY_OPERATOR, kind: 'backup', what });
      await move(source.file, target, options.resume === true);
    } finally {
      await target.close();
    }
  } finally {
    for (const lock of locks) lock.release();
  }
}

async function refuseSource(at: StorePlace): Promise<void> {
  // Throws if it is of another version.
  const isThere = await withReads(at, systemClock, async () => true);
  if (!isThere) throw new Fault('configuration', `There is no database ${at.file}.`);
  refuseForeign(at.file, at.migrationsFolder);
}

async function move(file: string, target: Server, isResumed: boolean): Promise<void> {
  const raw = copy.readSqlite(file);
  try {
    const tables = copy.tablesOf(raw);
    if (!isResumed) await copy.refuseFilled(target, target.query, tables);
    const from = copy.sqliteSide(raw);
    let rows = 0;
    const different: string[] = [];
    for (const table of tables) {
      await copy.copyRows(
        from,
        copy.serverSide(target.query),
        table,
        await copy.countThere(target.query, table),
      );
      const read = await copy.sumOf(from, table);
      const there = await copy.sumThere(target, table);
      const isEqual = read.rows === there.rows && read.sum === there.sum;
      if (!isEqual) different.push(table.name);
      rows += there.rows;
      say(`${table.name} ${read.rows} ${there.rows} ${isEqual ? 'ok' : 'different'}`);
    }
    await copy.setSequences(target.query);
    say(`${tables.length} tables, ${rows} rows, ${different.length === 0 ? 'equal' : 'different'}`);
    if (different.length === 0) return;
    const what = `${target.place} holds other rows than ${file} (${different.join(', ')}): empty it, and copy once more`;
    throw new Fault('store_unavailable', what);
  } catch (error) {
    if (error instanceof Fault) throw error;
    const what = `The store could not be copied to ${target.place}; go on with --resume, or empty it and begin anew`;
    throw new Fault('store_unavailable', what, error);
  } finally {
    raw.close();
  }
}
