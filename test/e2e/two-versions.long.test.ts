/**
 * An upgrade with both versions at work: a gateway of an earlier revision beside this one on one PostgreSQL, in both orders.
 * The earlier one is built from the history of this checkout; where that is cut off, nothing can be tried.
 */
import { execFile } from 'node:child_process';
import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { type FakeModel, startFakeModel } from '../fakes/model.js';
import { type FakeTelegram, startFakeTelegram } from '../fakes/telegram.js';
import { eventually, type Home, MAIN, makeHome, type Running, run } from '../harness/gateway.js';
import { describeWithPostgres, type PostgresServer, startPostgres } from '../harness/postgres.js';

/** The last release, once there is one. Since this one a gateway works beside a later version's migrations. */
const EARLIER = '8eeef147';
const LEASE_SECONDS = 4;
const GUEST = { id: 7, first_name: 'Guest' };
const ROOT = fileURLToPath(new URL('../..', import.meta.url));

const exec = promisify(execFile);
const git = (...args: string[]) => exec('git', args, { cwd: ROOT });
const isKnown = await git('cat-file', '-e', `${EARLIER}^{commit}`).then(
  () => true,
  () => false,
);
if (!isKnown) process.stderr.write(`the history lacks ${EARLIER}: two versions side by side are SKIPPED\n`);

/** A gateway of the earlier revision, compiled with what is installed here; without the page. */
async function build(): Promise<{ main: string; remove(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'coterie-earlier-'));
  const checkout = join(folder, 'checkout');
  await git('worktree', 'add', '--detach', checkout, EARLIER);
  await symlink(join(ROOT, 'node_modules'), join(checkout, 'node_modules'));
  await exec('npx', ['tsc', '-p', 'tsconfig.build.json'], { cwd: checkout });
  await exec(process.execPath, ['build.js'], { cwd: checkout });
  return {
    main: join(checkout, 'dist/main.js'),
    async remove() {
      await git('worktree', 'remove', '--force', checkout);
      await rm(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

describeWithPostgres('an upgrade', () => {
  describe.skipIf(!isKnown)('with both versions on one store', () => {
    let server: PostgresServer;
    let earlier: Awaited<ReturnType<typeof build>>;
    let telegram: FakeTelegram;
    let model: FakeModel;
    let home: Home;
    let started: Running[] = [];
    beforeAll(async () => {
      [server, earlier] = await Promise.all([startPostgres(), build()]);
    }, 300_000);
    afterAll(async () => {
      await server?.close();
      await earlier?.remove();
    });

    async function withBoth(work: () => Promise<void>): Promise<void> {
      telegram = await startFakeTelegram();
      model = await startFakeModel({
        reply: ({ messages }) => `heard ${JSON.stringify(messages.at(-1)).match(/m\d+/)?.[0]}`,
      });
      home = await makeHome({});
      const shared = {
        ...{ store: { url: await server.emptyDatabase() }, log: { format: 'json', level: 'debug' } },
        ...{ access: { direct: 'open' }, conversation: { debounce_ms: 0 }, board: { port: 0 } },
        model: { base_url: model.url, name: 'scripted' },
        channels: { telegram: { token: telegram.token, api_root: telegram.url, messages_per_second: 1_000 } },
      };
      for (const name of ['old', 'new'])
        await home.write(
          `${name}.yaml`,
          stringify({ ...shared, node: { name, lease_seconds: LEASE_SECONDS } }),
        );
      try {
        await work();
      } finally {
        await Promise.all(started.splice(0).map((gateway) => gateway.stop('SIGKILL')));
        await telegram.close();
        await model.close();
        await home.remove();
      }
    }

    function start(name: 'old' | 'new'): Running {
      const gateway = run(home, ['start', '-c', `${name}.yaml`], {}, name === 'old' ? earlier.main : MAIN);
      started = [...started, gateway];
      return gateway;
    }
    let said = 0;
    const tell = () => telegram.say({ from: GUEST, text: `m${++said}` });
    const answers = () => telegram.sent.flatMap(({ text }) => text.match(/m\d+/g) ?? []);
    async function answered(): Promise<void> {
      tell();
      const last = `m${said}`;
      await eventually(() => answers().includes(last), `an answer to ${last}`, 30_000);
    }
    const polls = (gateway: Running) => gateway.saw(/"event":"lease taken","lease":"channel:telegram"/);
    function eachOnceAndInOrder(from: number): void {
      expect(answers()).toEqual(Array.from({ length: said - from }, (_, n) => `m${from + n + 1}`));
    }

    it('the new one is started beside the old, migrates, and takes over when that ends, and back', () =>
      withBoth(async () => {
        const from = said;
        const old = start('old');
        await polls(old);
        await answered();
        const fresh = start('new');
        await fresh.saw(/"event":"standby","lease":"channel:telegram"/);
        // On the database of the new one.
        for (let n = 0; n < 5; n++) await answered();
        expect(await old.stop()).toBe(0);
        await polls(fresh);
        await answered();
        // Back, as in an upgrade that is taken back.
        const again = start('old');
        await again.saw('"event":"standby"');
        await answered();
        expect(await fresh.stop()).toBe(0);
        await polls(again);
        await answered();
        eachOnceAndInOrder(from);
        for (const gateway of [old, fresh, again])
          expect(gateway.err()).not.toMatch(/"level":"(error|fatal)"/);
      }));

    it('the old one, killed while it answers, is replaced by the new', () =>
      withBoth(async () => {
        const from = said;
        const old = start('old');
        await polls(old);
        await answered();
        const fresh = start('new');
        await fresh.saw(/"event":"standby","lease":"channel:telegram"/);
        model.reply(() => ({ text: 'never', headerDelayMs: 60_000 }));
        tell();
        await model.received(2);
        await old.stop('SIGKILL');
        model.reply(({ messages }) => `heard ${JSON.stringify(messages.at(-1)).match(/m\d+/)?.[0]}`);
        await polls(fresh);
        await eventually(() => answers().includes(`m${said}`), 'what the old one left', 30_000);
        await answered();
        eachOnceAndInOrder(from);
      }));
  });
});
