/**
 * `npm run bench:board`: the page in a real Chromium, and the cost of pages for the gateway. With `--dist DIR`, the start and
 * memory of a gateway that nobody looks at are compared with that compiled gateway, of a checkout without the page.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

let failed = false;
for (const part of ['board-page', 'board-route', 'board-idle']) {
  const script = fileURLToPath(new URL(`./${part}.js`, import.meta.url));
  const { status } = spawnSync(process.execPath, [script, ...process.argv.slice(2)], { stdio: 'inherit' });
  failed ||= status !== 0;
}
process.exitCode = failed ? 1 : 0;
