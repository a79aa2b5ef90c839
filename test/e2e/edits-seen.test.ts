/** `coterie doctor` beside two gateways on one PostgreSQL: how late each of them sees an edit in `groups_dir`. */
import { copyFile, mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import type { Running } from '../harness/gateway.js';
import { describeWithPostgres, type PostgresServer, startPostgres } from '../harness/postgres.js';
import { type SeveralGateways, severalGateways } from '../harness/several-gateways.js';

const LATE_MS = 1_500;

describeWithPostgres('an edit on a shared volume', () => {
  let server: PostgresServer;
  let on: SeveralGateways;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server.close());
  beforeEach(async () => {
    on = await severalGateways(server, { reply: 'well', leaseSeconds: 15 });
    for (const name of ['one', 'copy']) await mkdir(join(on.home.folder, name));
  });
  afterEach(() => on.close());

  async function start(name: string, groups: string): Promise<Running> {
    await on.configure(name, { groups_dir: groups });
    const gateway = on.start(name);
    await gateway.saw('coterie is up');
    return gateway;
  }
  /** Its lines about the folder. */
  async function doctor(): Promise<string[]> {
    const ran = on.run('a', 'doctor');
    await ran.exited;
    const hidden = (await readdir(join(on.home.folder, 'one'))).filter((name) => name.startsWith('.'));
    expect(hidden).toEqual([]);
    return ran
      .out()
      .split('\n')
      .filter((line) => line.includes('shared folder'));
  }

  it('is seen at once by both; nothing is asked of one alone', async () => {
    await start('a', 'one');
    expect(await doctor()).toEqual([]);
    await start('b', 'one');
    const seen =
      /^ok {6}shared folder: an edit in groups_dir is seen by a after 0\.\d\d s, b after 0\.\d\d s$/;
    let lines = await doctor();
    // A busy machine may keep a process waiting for a second.
    for (let tries = 1; tries < 3 && !seen.test(lines[0] ?? ''); tries++) lines = await doctor();
    expect(lines).toEqual([expect.stringMatching(seen)]);
  });

  it('that comes late is told, with what to do', async () => {
    await start('a', 'one');
    await start('b', 'copy');
    const over = new AbortController();
    const copying = copyLate(join(on.home.folder, 'one'), join(on.home.folder, 'copy'), over.signal);
    const lines = await doctor();
    over.abort();
    await copying;
    const late = lines.find((line) => line.includes('the gateway b'));
    expect(late).toMatch(
      /^warning shared folder: the gateway b saw an edit in groups_dir (only after [1-4]\.|not within 5)/,
    );
    expect(late).toContain('NFS with actimeo=0 (or noac)');
  });
});

/** As a mount that keeps what it knows: hidden files, each as it was a while ago. */
async function copyLate(from: string, to: string, over: AbortSignal): Promise<void> {
  const held = join(to, 'held');
  await mkdir(held);
  while (!over.aborted) {
    const names = (await readdir(from)).filter((name) => name.startsWith('.coterie'));
    for (const name of names) await copyFile(join(from, name), join(held, name)).catch(() => {});
    await systemClock.sleep(LATE_MS, over);
    for (const name of names) await copyFile(join(held, name), join(to, name)).catch(() => {});
  }
  await rm(held, { recursive: true });
}
