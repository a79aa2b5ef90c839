/**
 * Loaded into the gateway before its own code (`node --import`): counts the statements of its main thread, and keeps the
 * totals in the file COUNTS_FILE, where another process reads them at any moment. Recall's index has a thread and a
 * database of its own, which nobody waits for: it is left out.
 */
import { openSync } from 'node:fs';
import { createRequire } from 'node:module';
import { isMainThread } from 'node:worker_threads';
import type { Database, Statement } from 'better-sqlite3';
import { countsOf, writeCounts } from './counts.js';

type Statements = Record<'run' | 'get' | 'all' | 'iterate', (...values: unknown[]) => unknown>;

const { COUNTS_FILE: file } = process.env;
if (isMainThread && file) count(file);

function count(file: string): void {
  const descriptor = openSync(file, 'w');
  const counts = countsOf(() => 0);
  writeCounts(descriptor, counts);
  // The gateway's own, which may be another checkout's.
  const Sqlite = createRequire(process.argv[1] ?? '')('better-sqlite3');
  /** Databases in a transaction that may write. */
  const writing = new WeakSet<Database>();

  function note(database: Database, source: string, readonly: boolean): void {
    const word = /^\s*(\w+)/.exec(source)?.[1]?.toUpperCase() ?? '';
    if (word === 'PRAGMA') counts.pragmas += 1;
    else if (word === 'BEGIN') {
      counts.brackets += 1;
      if (/IMMEDIATE|EXCLUSIVE/i.test(source)) writing.add(database);
    } else if (/^(COMMIT|END|ROLLBACK|SAVEPOINT|RELEASE)$/.test(word)) {
      counts.brackets += 1;
      if (/^(COMMIT|END|ROLLBACK)$/.test(word) && !/\bTO\b/i.test(source)) {
        if (writing.delete(database)) counts.writeTransactions += 1;
        else counts.readTransactions += 1;
      }
    } else if (readonly) {
      counts.selects += 1;
      if (!database.inTransaction) counts.readTransactions += 1;
    } else {
      counts.writes += 1;
      if (database.inTransaction) writing.add(database);
      else counts.writeTransactions += 1;
    }
    writeCounts(descriptor, counts);
  }

  const memory: Database = new Sqlite(':memory:');
  const statements: Statements = Object.getPrototypeOf(memory.prepare('SELECT 1'));
  memory.close();
  for (const verb of ['run', 'get', 'all', 'iterate'] as const) {
    const original = statements[verb];
    statements[verb] = function (this: Statement, ...values: unknown[]) {
      note(this.database, this.source, this.readonly);
      return original.apply(this, values);
    };
  }
  const exec = Sqlite.prototype.exec;
  Sqlite.prototype.exec = function (this: Database, sources: string) {
    for (const source of sources.split(';')) {
      if (source.trim() !== '') note(this, source, /^\s*SELECT/i.test(source));
    }
    return exec.call(this, sources);
  };
}
