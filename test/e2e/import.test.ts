/** `coterie import` as it is called, also while a gateway runs. */
import { afterEach, expect, test } from 'vitest';
import { type Home, makeHome, type Running, run } from '../harness/gateway.js';

let home: Home;
let gateway: Running | null = null;
afterEach(async () => {
  await gateway?.stop();
  gateway = null;
  await home.remove();
});

async function coterie(...args: string[]): Promise<Running & { code: number | null }> {
  const running = run(home, ['import', ...args]);
  running.endInput();
  return Object.assign(running, { code: await running.exited });
}

test('tells what it did, beside a running gateway; 1 for no folder or nothing in it, 2 without a name', async () => {
  home = await makeHome({ board: { port: 0 } });
  await home.write('from/MEMORY.md', 'm');
  await home.write('empty/x.txt', 'x');
  await home.write('file', 'x');
  gateway = run(home, ['start']);
  await gateway.saw(/http listener on/);
  const first = await coterie('from');
  expect(first.err()).toBe('');
  expect(first.code).toBe(0);
  expect(first.out()).toMatch(/^new +data\/workspace\/MEMORY\.md {2}\(from MEMORY\.md\)\n/);
  expect(await home.read('data/workspace/MEMORY.md')).toBe('m');
  for (const missing of ['nowhere', 'file']) {
    expect(await coterie(missing)).toMatchObject({ code: 1 });
  }
  const empty = await coterie('empty');
  expect(empty.code).toBe(1);
  expect(empty.err()).toMatch(/nothing to import in .*Looked for: an OpenClaw workspace/);
  expect((await coterie()).code).toBe(2);
});
