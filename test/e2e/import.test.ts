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

test('a dry run writes nothing and prints the same lines, and only they', async () => {
  home = await makeHome({ board: { port: 0 } });
  await home.write('from/workspace/SOUL.md', 'Be kind.');
  await home.write('from/workspace/IDENTITY.md', '- **Name:** Verso');
  await home.write('from/cron/jobs.json', '{}');
  const planned = await coterie('from', '--dry-run');
  expect(planned.code).toBe(0);
  expect(planned.out()).toContain('This was a dry run: nothing was written.\n');
  for (const path of ['data/workspace/SOUL.md', 'groups/personas/verso.md', 'data/restore.lock']) {
    expect(await home.read(path)).toBeNull();
  }
  const done = await coterie('from');
  expect(planned.out().replace('This was a dry run: nothing was written.\n', '')).toBe(done.out());
  expect(done.out()).toMatch(
    /personas\/verso\.md {2}\(from workspace\/SOUL\.md and workspace\/IDENTITY\.md\)\. .*\/persona new Verso from verso/,
  );
  expect(done.out()).toMatch(/^passed over {4}cron\/jobs\.json: schedules/m);
});
