/** Two gateways on one PostgreSQL: one works, the other stands by, and takes over when the first ends, dies or stands still. */

import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { type FakeModel, startFakeModel } from '../fakes/model.js';
import { type FakeTelegram, startFakeTelegram } from '../fakes/telegram.js';
import { eventually, type Home, makeHome, type Running, run } from '../harness/gateway.js';
import { describeWithPostgres, type PostgresServer, startPostgres } from '../harness/postgres.js';

const LEASE_MS = 2_000;
const GUEST = { id: 7, first_name: 'Guest' };

describeWithPostgres('two gateways on one store', () => {
  let server: PostgresServer;
  let telegram: FakeTelegram;
  let model: FakeModel;
  let home: Home;
  let started: Running[] = [];
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server.close());
  beforeEach(async () => {
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
    for (const name of ['a', 'b'])
      await home.write(
        `${name}.yaml`,
        stringify({ ...shared, node: { name, lease_seconds: LEASE_MS / 1_000 } }),
      );
  });
  afterEach(async () => {
    await Promise.all(started.splice(0).map((gateway) => gateway.stop('SIGKILL')));
    await telegram.close();
    await model.close();
    await home.remove();
  });

  function start(name: string): Running {
    const gateway = run(home, ['start', '-c', `${name}.yaml`]);
    started = [...started, gateway];
    return gateway;
  }
  async function command(...args: string[]): Promise<{ code: number | null; out: string; err: string }> {
    const ran = run(home, [...args, '-c', 'a.yaml']);
    started = [...started, ran];
    return { code: await ran.exited, out: ran.out(), err: ran.err() };
  }
  const said = () => telegram.sent.map(({ text }) => text);
  const tell = (text: string) => telegram.say({ from: GUEST, text });
  async function answered(text: string, withinMs = 5_000): Promise<number> {
    const began = performance.now();
    tell(text);
    await eventually(() => said().includes(`heard ${text}`), `an answer to ${text}`, withinMs);
    return performance.now() - began;
  }
  async function ready(gateway: Running): Promise<{ status: number; body: { channels: unknown } }> {
    const response = await fetch(`${await gateway.url()}/ready`);
    return { status: response.status, body: (await response.json()) as { channels: unknown } };
  }
  /** One works, the other stands by. */
  async function both(): Promise<[Running, Running]> {
    const a = start('a');
    await a.saw('coterie is up');
    const b = start('b');
    await b.saw('"event":"standby"');
    await answered('m1');
    return [a, b];
  }
  function nothingTwice(...texts: string[]): void {
    for (const text of texts)
      expect(
        said().filter((each) => each === `heard ${text}`),
        text,
      ).toHaveLength(1);
  }

  it('one works, the other says who does; a third of the same name is refused', async () => {
    const [a, b] = await both();
    expect(b.err()).toMatch(/"event":"standby","lease":"channel:telegram","held_by":"a"/);
    expect(await ready(b)).toMatchObject({
      status: 200,
      body: { channels: { telegram: { connected: false, held_by: 'a' } } },
    });
    expect(await ready(a)).toMatchObject({
      status: 200,
      body: { channels: { telegram: { connected: true } } },
    });
    const metrics = await (await fetch(`${await a.url()}/metrics`)).text();
    expect(metrics).toContain('coterie_lease_held{lease="channel:telegram"} 1');
    expect(metrics).toMatch(/coterie_node_info\{node="a",version="[^"]+"\} 1/);
    expect(await (await fetch(`${await b.url()}/metrics`)).text()).toContain(
      'coterie_lease_held{lease="jobs"} 0',
    );
    const { out } = await command('nodes');
    expect(out).toMatch(
      /^a {2}\S+ {2}since \S+ {2}seen \S+ {2}channel:telegram jobs journal upkeep\nb {2}.* {2}stands by\n$/,
    );
    const third = await command('start');
    expect(third.code).toBe(2);
    expect(third.err).toContain('A coterie named a runs on');
    expect(await b.stop()).toBe(0);
    expect((await command('nodes')).out).not.toContain('stands by');
  });

  it('takes over at once when the other ends in good order', async () => {
    const [a, b] = await both();
    expect(await a.stop()).toBe(0);
    const ended = performance.now();
    await b.saw('coterie is up');
    expect(performance.now() - ended).toBeLessThan(1_500);
    await answered('m2');
    nothingTwice('m1', 'm2');
  });

  it('takes over within a lease and a second after kill -9, and answers what waits', async () => {
    const [a, b] = await both();
    model.reply(() => ({ text: 'never', headerDelayMs: 60_000 }));
    tell('m2');
    await model.received(2);
    await a.stop('SIGKILL');
    const killed = performance.now();
    model.reply(({ messages }) => `heard ${JSON.stringify(messages.at(-1)).match(/m\d+/)?.[0]}`);
    tell('m3');
    await b.saw('"event":"lease taken"');
    expect(performance.now() - killed).toBeLessThan(LEASE_MS + 1_000);
    await eventually(() => said().some((text) => text.includes('m3')), 'an answer to m3', 10_000);
    expect(b.err()).toMatch(/"lease":"channel:telegram","fence":2/);
    nothingTwice('m1');
    const c = start('a');
    await c.saw('"event":"standby"');
  });

  it('while the database is away for longer than a lease, nobody works; then one does', async () => {
    const [a, b] = await both();
    await server.stop('immediate');
    await a.saw('"event":"lease lost"');
    tell('m2');
    await server.start();
    await eventually(() => said().includes('heard m2'), 'an answer to m2', 20_000);
    await answered('m3');
    nothingTwice('m1', 'm2', 'm3');
    const taken = [a, b].map(
      (gateway) => (gateway.err().match(/"event":"lease taken".*"jobs"/g) ?? []).length,
    );
    expect(taken.reduce((sum, each) => sum + each)).toBe(2);
  });

  it('one that stood still past its lease sends nothing, and stands by', async () => {
    const [a, b] = await both();
    process.kill(a.pid, 'SIGSTOP');
    tell('m2');
    await b.saw('coterie is up');
    await eventually(() => said().includes('heard m2'), 'an answer to m2', 10_000);
    process.kill(a.pid, 'SIGCONT');
    await a.saw('"event":"lease lost"');
    await a.saw('"event":"standby"');
    await answered('m3');
    nothingTwice('m1', 'm2', 'm3');
    expect(await b.stop()).toBe(0);
    await eventually(() => (a.err().match(/coterie is up/g) ?? []).length === 2, 'a takes over again', 5_000);
    await answered('m4');
    nothingTwice('m1', 'm2', 'm3', 'm4');
  });
});
