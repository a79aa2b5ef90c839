/**
 * `npm run bench:board`: the page in a real Chromium, and the cost of pages for the gateway. With `--dist DIR`, the start and
 * memory of a gateway that nobody looks at are compared with that compiled gateway, of a checkout without the page.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const given = process.argv.slice(2);
const at = given.indexOf('--dist');
const withoutDist = at < 0 ? given : given.toSpliced(at, 2);

let failed = false;
for (const part of ['board-page', 'board-route', 'board-idle']) {
  const script = fileURLToPath(new URL(`./${part}.js`, import.meta.url));
  // The other checkout has no page.
  const options = part === 'board-idle' ? given : withoutDist;
  const { status } = spawnSync(process.execPath, [script, ...options], { stdio: 'inherit' });
  failed ||= status !== 0;
}
process.exitCode = failed ? 1 : 0;
