/** Two gateways whose folders lie on one volume, which each of them sees at a path of its own. */
import { mkdir, readdir, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import type { FakeModel } from '../fakes/model.js';
import type { FakeTelegram } from '../fakes/telegram.js';
import { discordPlatform } from '../harness/discord.js';
import { eventually, type Home } from '../harness/gateway.js';
import { describeWithPostgres, type PostgresServer, startPostgres } from '../harness/postgres.js';
import { type SeveralGateways, severalGateways } from '../harness/several-gateways.js';

const LEASE_SECONDS = 2;

describeWithPostgres('two gateways on one volume', () => {
  let server: PostgresServer;
  let on: SeveralGateways;
  let telegram: FakeTelegram;
  let model: FakeModel;
  let home: Home;
  let { start, ofTelegram } = {} as SeveralGateways;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server.close());
  beforeEach(async () => {
    on = await severalGateways(server, {
      reply: { text: 'well', usage: { prompt_tokens: 90_000, completion_tokens: 10_000 } },
      leaseSeconds: LEASE_SECONDS,
    });
    ({ telegram, model, home, start, ofTelegram } = on);
    await mkdir(join(home.folder, 'volume'));
    for (const name of ['a', 'b']) await symlink('volume', join(home.folder, name));
  });
  afterEach(() => on.close());

  async function configure(changes: object): Promise<void> {
    for (const name of ['a', 'b'])
      await on.configure(name, { data_dir: name, groups_dir: `${name}/groups`, ...changes });
  }

  it('one that loses it ends with 1 and writes no memory beside it; the other goes on', async () => {
    await configure({});
    const a = start('a');
    await a.saw('coterie is up');
    const b = start('b');
    await b.saw('"event":"standby"');
    telegram.say({ text: 'm1' });
    await eventually(() => telegram.sent.length === 1, 'an answer');
    // The record of a turn is written beside its answer.
    const recorded = () =>
      readdir(join(home.folder, 'volume', 'replay'), { recursive: true }).catch(() => []);
    await eventually(async () => (await recorded()).some((file) => file.endsWith('.turns.gz')), 'its record');
    // Unmounted: an empty folder stays.
    await rm(join(home.folder, 'a'));
    await mkdir(join(home.folder, 'a'));
    expect(await a.exited).toBe(1);
    expect(a.err()).toMatch(/node\.lock was removed or replaced/);
    await b.saw('"event":"lease taken","lease":"channel:telegram"');
    telegram.say({ text: 'm2' });
    await eventually(() => telegram.sent.length === 2, 'an answer of the other');
    // working.log is made from the store, so that nothing of it is lost; the memory of chats would be.
    const beside = await readdir(join(home.folder, 'a'));
    expect(beside.filter((name) => !/^(working\.log|.*\.lock)$/.test(name))).toEqual([]);
    const onEmpty = start('a');
    expect(await onEmpty.exited).toBe(2);
    expect(onEmpty.err()).toMatch(/data_dir \(.*\) is not the folder of the gateway b/);
    // Or a folder in which a gateway of that name once began.
    await mkdir(join(home.folder, 'a', 'nodes', 'b'));
    for (const file of ['node.lock', 'token']) await home.write(`a/nodes/b/${file}`, '');
    expect(await start('a').exited).toBe(2);
    await rm(join(home.folder, 'a'), { recursive: true });
    await symlink('volume', join(home.folder, 'a'));
    await start('a').saw('"event":"standby"');
  });

  it('limits of the day hold over both, by at most one turn a gateway more', async () => {
    const discord = await discordPlatform();
    try {
      const { token, url } = discord.discord;
      const channels = { telegram: ofTelegram(), discord: { token, api_root: url } };
      await configure({ channels, limits: { tokens_per_day: 500_000 } });
      const a = start('a');
      await a.saw('coterie is up');
      const b = start('b');
      await b.saw('"event":"lease taken","lease":"channel:discord"');
      await b.saw('coterie is up');
      for (let n = 0; n < 8; n++) {
        const from = { number: 1 + n, name: `Person ${n}` };
        discord.say({ from, in: { kind: 'direct', number: 1 + n }, text: `d${n}` });
        telegram.say({ from: { id: 100 + n, first_name: 'Guest' }, text: `t${n}` });
        const count = () => telegram.sent.length;
        await eventually(() => count() > n, `an answer or a refusal of t${n}`);
      }
      await eventually(() => telegram.sent.some(({ text }) => /limit/i.test(text)), 'the limit is told');
      expect(model.requests.length).toBeGreaterThanOrEqual(5);
      expect(model.requests.length).toBeLessThanOrEqual(5 + 2);
    } finally {
      await discord.close();
    }
  });
});
