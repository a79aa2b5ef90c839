/** `coterie doctor`: a line for each check, whatever servers say. */
import { mkdir } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { serverFindings } from '../../src/doctor.js';
import { listen } from '../fakes/http-server.js';
import { makeHome, run } from '../harness/gateway.js';

test('what a server answers with stays on the line of its check', async () => {
  const words = 'line one\nline two\r\nok      fake: x\u2028\u001b[31mred\u001b[0m';
  const server = createServer((_, response) => {
    response.writeHead(400, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ error: { message: words } }));
  });
  const { url, close } = await listen(server);
  const home = await makeHome({ model: { base_url: `${url}/v1`, name: 'm' } });
  try {
    const checked = run(home, ['doctor']);
    expect(await checked.exited).toBe(1);
    const lines = checked.out().trimEnd().split('\n');
    expect(lines.filter((line) => !/^(ok|warning|failed) +[a-z]+: /.test(line))).toEqual([]);
    expect(lines.filter((line) => line.includes('line two'))).toEqual([
      expect.stringMatching(/^failed +model: .*line one line two ok {6}fake: x\\u\{2028\}\\u\{1b\}\[31mred/),
    ]);
  } finally {
    await close();
    await home.remove();
  }
});

test('names that differ in nothing that is seen are told of', async () => {
  const home = await makeHome({});
  try {
    for (const form of ['NFC', 'NFD'])
      await mkdir(join(home.folder, 'groups/telegram_1', 'zoë'.normalize(form)), { recursive: true });
    const checked = run(home, ['doctor']);
    await checked.exited;
    expect(checked.out()).toMatch(/^warning names: .*telegram_1\/zo.* stands there 2 times/m);
  } finally {
    await home.remove();
  }
});

test('a database server whose clock is off, or that has few connections left, is told of', () => {
  const warnings = (aheadMs: number, free: number, needed: number) =>
    serverFindings({ aheadMs, free }, needed).flatMap(({ state, text }) =>
      state === 'warning' ? [text] : [],
    );
  expect(warnings(-2_000, 9, 9)).toEqual([]);
  expect(warnings(2_001, 90, 9)).toEqual([
    "its clock is 2.0 s ahead of this machine's; let both follow a time server",
  ]);
  expect(warnings(-61_500, 90, 9)).toEqual([
    expect.stringMatching(/^its clock is 61\.5 s behind this machine/),
  ]);
  expect(warnings(0, 8, 9)).toEqual([
    expect.stringMatching(/^it has 8 connections left, and a gateway opens 9/),
  ]);
  expect(warnings(0, 0, 0)).toEqual([]);
});
