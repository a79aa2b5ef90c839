/**
 * `npm run bench`: every part of it in turn. `--quick` leaves out what takes minutes and has nothing to do with the
 * route of a message; `--dist PATH` measures the gateway of another checkout, and only what goes through a process.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { readOptions } from './options.js';

const { quick, own } = readOptions();
const parts = [
  'run',
  'statements',
  ...(own ? ['one-message'] : []),
  'windows',
  ...(own ? ['markdown', 'rooms', 'jobs', 'journal', 'tasks'] : []),
  'streaming',
  ...(quick ? [] : ['channels']),
  ...(quick || !own ? [] : ['recall-scale', 'queue']),
];
let failed = false;
for (const part of parts) {
  const script = fileURLToPath(new URL(`./${part}.js`, import.meta.url));
  const { status } = spawnSync(process.execPath, [script, ...process.argv.slice(2)], { stdio: 'inherit' });
  failed ||= status !== 0;
}
process.exitCode = failed ? 1 : 0;
