/** A command that prints 1 GB: it is read to its end, and what is kept of it stays small. */
import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { systemClock } from '../../../src/core/clock.js';
import { shell } from '../../../src/tools/shell/shell.js';
import { makeHome } from '../files/support.js';

it('is read to its end, and kept in part', async () => {
  const { folders, call } = await makeHome();
  const limits = { network: false, env: [], timeoutSeconds: 120, memoryMb: 512 };
  const tool = shell({
    ...{ folders, clock: systemClock, newId: randomUUID, environment: process.env, hidden: [] },
    settings: { sandbox: 'none', ...limits },
  });
  const before = process.memoryUsage().rss;
  const command = 'echo begin; head -c 1000000000 /dev/zero; echo end';
  const { content } = await call(tool, { command }, { signal: new AbortController().signal });
  expect(content).toContain(`… ${1_000_000_010 - 20_000} bytes are left out …`);
  expect(content).toMatch(/^begin\n[\s\S]*end\n\[exit code 0\]$/);
  expect(content.length).toBeLessThan(25_000);
  expect(process.memoryUsage().rss - before).toBeLessThan(200_000_000);
});
