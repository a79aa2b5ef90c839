/**
 * `npm run bench`: the gateway beside the smallest bot, then messages of Markdown, rooms of several personas and replies that grow, then recall at three sizes, then the
 * embedding queue.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const given = process.argv.slice(2);
// A glance is at the gateway alone: a million messages take minutes to index.
const parts = given.includes('--quick')
  ? ['run', 'markdown', 'rooms', 'streaming']
  : ['run', 'markdown', 'rooms', 'streaming', 'channels', 'recall-scale', 'queue'];
let failed = false;
for (const part of parts) {
  const script = fileURLToPath(new URL(`./${part}.js`, import.meta.url));
  const { status } = spawnSync(process.execPath, [script, ...given], { stdio: 'inherit' });
  failed ||= status !== 0;
}
process.exitCode = failed ? 1 : 0;
