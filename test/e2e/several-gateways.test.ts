/** Two gateways on one PostgreSQL: they share the work, and one takes over when the other ends, dies or stands still. */
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { startFakeDiscord } from '../fakes/discord.js';
import type { FakeModel } from '../fakes/model.js';
import type { FakeTelegram } from '../fakes/telegram.js';
import { eventually, type Running } from '../harness/gateway.js';
import { describeWithPostgres, type PostgresServer, startPostgres } from '../harness/postgres.js';
import { type SeveralGateways, severalGateways } from '../harness/several-gateways.js';

const LEASE_MS = 4_000;
const GUEST = { id: 7, first_name: 'Guest' };

describeWithPostgres('two gateways on one store', () => {
  let server: PostgresServer;
  let on: SeveralGateways;
  let telegram: FakeTelegram;
  let model: FakeModel;
  let { configure, start, ofTelegram } = {} as SeveralGateways;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server.close());
  beforeEach(async () => {
    on = await severalGateways(server, {
      reply: ({ messages }) => `heard ${JSON.stringify(messages.at(-1)).match(/m\d+/)?.[0]}`,
      leaseSeconds: LEASE_MS / 1_000,
    });
    ({ telegram, model, configure, start, ofTelegram } = on);
    for (const name of ['a', 'b']) await configure(name);
  });
  afterEach(() => on.close());

  async function command(...args: string[]): Promise<{ code: number | null; out: string; err: string }> {
    const ran = on.run('a', ...args);
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
      /^a {2}\S+ {2}since \S+ {2}seen \S+ {2}channel:board channel:telegram jobs journal upkeep\nb {2}.* {2}stands by\n$/,
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
    await b.saw('"event":"lease taken","lease":"channel:telegram"');
    expect(performance.now() - ended).toBeLessThan(1_500);
    await answered('m2');
    nothingTwice('m1', 'm2');
  });

  it('turns that take long do not keep the other from taking over at once', async () => {
    const [a, b] = await both();
    let slow = 1;
    model.reply(({ messages }) => {
      const text = `heard ${JSON.stringify(messages.at(-1)).match(/m\d+/)?.[0]}`;
      return slow-- > 0 ? { text, headerDelayMs: 15_000 } : text;
    });
    tell('m2');
    await model.received(2);
    const asked = performance.now();
    const ended = a.stop();
    telegram.say({ from: { id: 8, first_name: 'Other' }, text: 'm3' });
    await eventually(
      () => said().includes('heard m3') && said().includes('heard m2'),
      'both answers',
      10_000,
    );
    expect(await ended).toBe(0);
    expect(performance.now() - asked).toBeLessThan(10_000);
    await b.saw('"event":"lease taken","lease":"channel:telegram"');
    nothingTwice('m1', 'm2', 'm3');
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
    await b.saw('"event":"lease taken","lease":"channel:telegram"');
    await eventually(() => said().includes('heard m2'), 'an answer to m2', 10_000);
    process.kill(a.pid, 'SIGCONT');
    await a.saw('"event":"lease lost"');
    await a.saw('"event":"standby"');
    await answered('m3');
    nothingTwice('m1', 'm2', 'm3');
    expect(await b.stop()).toBe(0);
    await a.saw('"lease":"channel:telegram","fence":3');
    await answered('m4');
    nothingTwice('m1', 'm2', 'm3', 'm4');
  });

  it('one whose lease ran out while the model answered sends nothing of it, and the other answers once', async () => {
    const [a, b] = await both();
    let asked = 0;
    model.reply(({ messages }) => {
      const text = `heard ${JSON.stringify(messages.at(-1)).match(/m\d+/)?.[0]}`;
      return asked++ === 0 ? { text, headerDelayMs: 1_000 } : text;
    });
    tell('m2');
    await model.received(2);
    process.kill(a.pid, 'SIGSTOP');
    await eventually(() => said().includes('heard m2'), 'an answer to m2', LEASE_MS + 10_000);
    expect(b.err()).toContain('"event":"lease taken","lease":"channel:telegram"');
    // The model's answer waits at its door, and all its timers are due.
    process.kill(a.pid, 'SIGCONT');
    await a.saw('"event":"standby"');
    await answered('m3');
    nothingTwice('m1', 'm2', 'm3');
    const metrics = await (await fetch(`${await b.url()}/metrics`)).text();
    expect(metrics).toMatch(/coterie_takeovers_total\{kind="room"\} 1/);
  });

  it('clocks that differ by two minutes change nothing, and a takeover takes as long', async () => {
    const moving = fileURLToPath(new URL('../harness/moving-clock.mjs', import.meta.url));
    const environment = { NODE_OPTIONS: `--import ${pathToFileURL(moving)}` };
    const [a, b] = [start('a', environment), start('b', environment)];
    await Promise.all([a, b].map((gateway) => gateway.saw('coterie is up')));
    const [holder, other] = a.err().includes('"event":"lease taken","lease":"channel:telegram"')
      ? [a, b]
      : [b, a];
    // A minute ahead; twice: a minute behind.
    for (const gateway of [holder, other, other]) {
      process.kill(gateway.pid, 'SIGUSR2');
      await new Promise((resolve) => setTimeout(resolve, LEASE_MS / 2));
    }
    await answered('m1');
    expect(holder.err() + other.err()).not.toContain('"event":"lease lost"');
    await holder.stop('SIGKILL');
    const killed = performance.now();
    await other.saw('"event":"lease taken","lease":"channel:telegram"');
    expect(performance.now() - killed).toBeLessThan(LEASE_MS + 1_000);
    await answered('m2');
    nothingTwice('m1', 'm2');
  });

  it('what arrives at one by webhook or on its page is answered by the other that holds the channel', async () => {
    const secret = 'a-secret-of-thirty-two-characters';
    const { url } = telegram;
    const webhook = { mode: 'webhook', webhook_url: `${url}/nowhere`, webhook_secret: secret };
    for (const name of ['a', 'b'])
      await configure(name, { channels: { telegram: { ...ofTelegram(), ...webhook } } });
    const [a, b] = [start('a'), start('b')];
    await Promise.all([a, b].map((gateway) => gateway.saw('coterie is up')));
    let id = 1_000;
    for (const [n, gateway] of [a, b, a, b].entries()) {
      id += 1;
      const message = {
        ...{ message_id: id, date: Math.floor(Date.now() / 1_000), text: `m${n}` },
        ...{
          chat: { id: GUEST.id, type: 'private', first_name: 'Guest' },
          from: { ...GUEST, is_bot: false },
        },
      };
      const call = async () =>
        fetch(`${await gateway.url()}/telegram/webhook`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'x-telegram-bot-api-secret-token': secret },
          body: JSON.stringify({ update_id: id, message }),
        });
      // As Telegram does, until the gateway has logged in.
      await eventually(async () => {
        const response = await call();
        await response.text();
        return response.status === 200;
      }, `m${n} is taken`);
      await eventually(() => said().includes(`heard m${n}`), `an answer to m${n}`, 5_000);
    }
    nothingTwice('m0', 'm1', 'm2', 'm3');
  });

  it('one that joins takes a share of the platforms, and gives it back when it ends', async () => {
    const discord = await startFakeDiscord();
    try {
      const channels = {
        telegram: ofTelegram(),
        discord: { token: discord.token, api_root: discord.url },
      };
      for (const name of ['a', 'b']) await configure(name, { channels });
      const a = start('a');
      await a.saw('coterie is up');
      const b = start('b');
      await b.saw('"event":"lease taken","lease":"channel:discord"');
      await answered('m1');
      const { out } = await command('nodes');
      expect(out).toMatch(/^a .*channel:telegram.*\nb .*channel:discord\n$/);
      expect((await ready(b)).body).toMatchObject({
        channels: { telegram: { connected: false, held_by: 'a' }, discord: { connected: true } },
      });
      expect(await b.stop()).toBe(0);
      await eventually(
        () => (a.err().match(/"event":"lease taken","lease":"channel:discord"/g) ?? []).length === 2,
        'a takes it back',
        3_000,
      );
      await answered('m2');
      nothingTwice('m1', 'm2');
    } finally {
      await discord.close();
    }
  });

  it('takes up only its roles', async () => {
    await configure('b', { node: { name: 'b', lease_seconds: LEASE_MS / 1_000, roles: ['jobs'] } });
    const b = start('b');
    await b.saw('"event":"lease taken","lease":"upkeep"');
    tell('m1');
    expect((await ready(b)).status).toBe(503);
    const a = start('a');
    await eventually(() => said().includes('heard m1'), 'an answer to m1');
    await eventually(
      async () => JSON.stringify((await ready(b)).body).includes('"held_by":"a"'),
      'b hears of a',
      LEASE_MS,
    );
    expect(a.err()).toMatch(/"event":"standby","lease":"jobs","held_by":"b"/);
    expect((await fetch(`${await b.url()}/`)).status).toBe(404);
    await configure('b', { node: { name: 'b', roles: ['channels', 'jobs'] } });
    const refused = start('b');
    expect(await refused.exited).toBe(2);
    expect(refused.err()).toContain('node.roles: expected turns beside channels');
  });

  it('a page at either is answered by the one that holds its chats; when its gateway dies, it goes on at the other', async () => {
    const token = 'a long and unguessable token';
    for (const name of ['a', 'b']) await configure(name, { board: { port: 0, token } });
    const a = start('a');
    await a.saw('coterie is up');
    const b = start('b');
    await b.saw('"event":"standby","lease":"channel:board"');
    await b.saw('coterie is up');
    const urls = { a: await a.url(), b: await b.url() };
    const signIn = await fetch(`${urls.b}/api/session`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin: urls.b },
      body: JSON.stringify({ token }),
    });
    const [, session = ''] = /^coterie_\d+=([\w-]+);/.exec(signIn.headers.get('set-cookie') ?? '') ?? [];
    const on = (url: string) => ({
      cookie: `coterie_${new URL(url).port}=${session}`,
      ...{ 'content-type': 'application/json', origin: url },
    });
    const send = async (url: string, text: string) => {
      const response = await fetch(`${url}/api/board/chats/board_main/messages`, {
        method: 'POST',
        headers: on(url),
        body: JSON.stringify({ id: `message-of-${text}`, text, files: [] }),
      });
      expect(response.status, await response.text()).toBeLessThan(300);
    };
    const shows = (url: string, text: string) =>
      eventually(
        async () => {
          const response = await fetch(`${url}/api/board/rows?room=board_main`, { headers: on(url) });
          return (await response.text()).includes(text);
        },
        `${text} on the page`,
        10_000,
      );
    await send(urls.b, 'm1');
    await shows(urls.b, 'heard m1');
    await shows(urls.a, 'heard m1');
    await a.stop('SIGKILL');
    await send(urls.b, 'm2');
    await shows(urls.b, 'heard m2');
    expect(
      model.requests.filter(({ body }) => JSON.stringify(body.messages.at(-1)).includes('m1')),
    ).toHaveLength(1);
  });

  it('shards of Discord are leases: each hears of its servers, and the holder of the channel answers in all', async () => {
    const discord = await startFakeDiscord();
    try {
      const shards = 2;
      discord.settings.maxConcurrency = shards;
      const channelOf = (shard: number) => `60000000000000002${shard}`;
      for (let shard = 0; shard < shards; shard++) {
        // Discord's rule: (guild_id >> 22) % num_shards.
        const id = String(BigInt(1_000_000_000 + shard) << 22n);
        discord.guild({ id, name: `Server ${shard}`, channels: [{ id: channelOf(shard), name: 'talk' }] });
      }
      const channels = {
        discord: { token: discord.token, api_root: discord.url, shards, access: { groups: 'open' } },
      };
      for (const name of ['a', 'b']) await configure(name, { channels });
      const anna = { id: '800000000000000001', username: 'anna' };
      const shows = (text: string) => discord.sent.filter(({ content }) => content.includes(`heard ${text}`));
      const asked = async (text: string, shard: number) => {
        discord.say({ from: anna, channelId: channelOf(shard), content: `<@${discord.bot.id}> ${text}` });
        await eventually(() => shows(text).length > 0, `an answer to ${text}`, 15_000);
        return shows(text);
      };
      const a = start('a');
      await a.saw('coterie is up');
      await eventually(() => discord.sessions().connected === shards, 'a is connected by both', 20_000);
      expect(await asked('m1', 1)).toHaveLength(1);
      const b = start('b');
      await b.saw('"event":"lease taken","lease":"channel:discord:1"');
      await eventually(() => discord.sessions().connected === shards, 'b is connected by one', 20_000);
      expect((await command('nodes')).out).toMatch(/^a .*channel:discord .*\nb .*channel:discord:1\n$/);
      expect(await asked('m2', 1)).toHaveLength(1);
      expect(await asked('m3', 0)).toHaveLength(1);
      await b.stop('SIGKILL');
      expect(await asked('m4', 1)).toHaveLength(1);
      expect(['m1', 'm2', 'm3', 'm4'].map((text) => shows(text).length)).toEqual([1, 1, 1, 1]);
    } finally {
      await discord.close();
    }
  });
});
