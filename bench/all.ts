/**
 * `npm run bench`: all parts in turn. `--quick` skips slow parts that are not about the route of a message; `--dist
 * PATH` measures another checkout's gateway, only in the parts that run it as a process.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { readOptions } from './options.js';

const { quick, own } = readOptions();
const parts = [
  'run',
  'statements',
  ...(own ? ['stores', 'one-message'] : []),
  'gateways',
  'windows',
  ...(own ? ['markdown', 'lore', 'cards', 'rooms', 'jobs', 'journal', 'tasks'] : []),
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
