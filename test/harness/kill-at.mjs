/**
 * Loaded before the gateway by `NODE_OPTIONS=--import`, ends its process (SIGKILL) at the point that KILL_AT names, as
 * JSON: `{ at: 'statement', sql, values?, when }`: before or after a statement of the database whose text and values
 * hold that; `{ at: 'commit', … }`: after the transaction in which it ran; `{ at: 'spawn', holds }`: before a process is
 * started whose arguments hold that; `{ at: 'rename', holds }`: before a file is renamed to such a name.
 */
import childProcess from 'node:child_process';
import fs from 'node:fs';
import { createRequire, syncBuiltinESMExports } from 'node:module';

const { at, sql = '', values = '', when = 'before', holds = '' } = JSON.parse(process.env.KILL_AT ?? '{}');
const end = () => process.kill(process.pid, 'SIGKILL');

if (at === 'spawn') {
  const { spawn } = childProcess;
  childProcess.spawn = (...given) => {
    if (JSON.stringify(given).includes(holds)) end();
    return spawn(...given);
  };
}

if (at === 'rename') {
  const { rename } = fs.promises;
  fs.promises.rename = (from, to) => {
    if (String(to).endsWith(holds)) end();
    return rename(from, to);
  };
  const { renameSync } = fs;
  fs.renameSync = (from, to) => {
    if (String(to).endsWith(holds)) end();
    return renameSync(from, to);
  };
}

if (at === 'statement' || at === 'commit') {
  const Database = createRequire(import.meta.url)('better-sqlite3');
  const { prepare, transaction } = Database.prototype;
  let isDue = false;
  const watched =
    (execute, text) =>
    (...given) => {
      const isIt = text.includes(sql) && JSON.stringify(given).includes(values);
      if (isIt && at === 'statement' && when === 'before') end();
      const result = execute(...given);
      if (isIt && at === 'statement') end();
      isDue ||= isIt;
      return result;
    };
  Database.prototype.prepare = function prepareWatched(text) {
    const statement = prepare.call(this, text);
    if (!text.includes(sql)) return statement;
    for (const verb of ['run', 'get', 'all'])
      statement[verb] = watched(statement[verb].bind(statement), text);
    return statement;
  };
  Database.prototype.transaction = function transactionWatched(work) {
    const inTransaction = transaction.call(this, work);
    const ended =
      (execute) =>
      (...given) => {
        const result = execute(...given);
        if (isDue) end();
        return result;
      };
    const { immediate, deferred, exclusive } = inTransaction;
    return Object.assign(ended(inTransaction), {
      immediate: ended(immediate),
      deferred: ended(deferred),
      exclusive: ended(exclusive),
    });
  };
}
syncBuiltinESMExports();
