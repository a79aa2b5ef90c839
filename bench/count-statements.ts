/**
 * Loaded into the gateway before its own code (`node --import`): counts the SQL statements of its main thread and keeps
 * the totals in the file COUNTS_FILE for other processes. Recall's index is not counted: it has its own thread and
 * database, which nothing waits for.
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
  // The gateway's module, possibly another checkout's.
  const Sqlite = createRequire(process.argv[1] ?? '')('better-sqlite3');
  /** Databases with an open write transaction. */
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
