/** The real gateway where every server is reached by a proxy alone: which of them it asks the proxy for, and which not. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { startFakeEmbeddings } from '../fakes/embeddings.js';
import { startRemote } from '../fakes/mcp/remote.js';
import { startFakeModel } from '../fakes/model.js';
import { startFakeCollector } from '../fakes/otlp.js';
import { type FakeProxy, startFakeProxy } from '../fakes/proxy.js';
import { startFakeSpeech } from '../fakes/speech.js';
import { MEDIA_HOSTS } from '../fakes/whatsapp-cdn.js';
import { discordPlatform } from '../harness/discord.js';
import { eventually, makeHome, run } from '../harness/gateway.js';
import type { Platform } from '../harness/platform.js';
import { stageOn } from '../harness/stage.js';
import { telegramPlatform } from '../harness/telegram-platform.js';
import { whatsappPlatform } from '../harness/whatsapp.js';
import { page, serve } from '../tools/web/support.js';
import { SMALL_PNG } from './pictures.js';

const ANNA = { number: 7, name: 'Anna' };
const DIRECT = { kind: 'direct', number: 7 } as const;

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function proxy(wishes: Parameters<typeof startFakeProxy>[0] = {}): Promise<FakeProxy> {
  const fake = await startFakeProxy(wishes);
  closing.push(fake.close);
  return fake;
}

const PASSWORD = 'hunter2-of-the-proxy';

/** Every address on loopback by a name that only the proxy knows. */
const named = <Value>(value: Value): Value =>
  JSON.parse(JSON.stringify(value).replaceAll('127.0.0.1:', `${NAME}:`)) as Value;
const NAME = 'server.test';

const PLATFORMS: [string, () => Promise<Platform>, boolean][] = [
  ['Telegram', telegramPlatform, true],
  // Its links lead to loopback itself, where files are fetched from nobody but the server that the configuration names.
  ['Discord', discordPlatform, false],
  ['WhatsApp', whatsappPlatform, true],
];

describe('by network.proxy', () => {
  test.each(PLATFORMS)('%s is reached, and every server beside it', async (_name, make, hasFiles) => {
    const [platform, speech, embeddings, tools, collector] = await Promise.all([
      ...([make(), startFakeSpeech(), startFakeEmbeddings({ length: 8 }), startRemote('stateless')] as const),
      startFakeCollector(),
    ]);
    closing.push(speech.close, embeddings.close, tools.close, collector.close);
    const site = await serve(page('text/plain', 'words of a page'));
    const { COTERIE_FAKE_MEDIA_PORT: port, COTERIE_FAKE_MEDIA_CA: ca = '' } = platform.environment;
    const media = port === undefined ? [] : MEDIA_HOSTS.map((host) => [`${host}:443`, Number(port)]);
    const fake = await proxy({ login: `me:${PASSWORD}`, ports: Object.fromEntries(media) });
    const folder = await mkdtemp(join(tmpdir(), 'coterie-proxy-'));
    closing.push(() => rm(folder, { recursive: true }));
    await writeFile(join(folder, 'ca.pem'), ca);
    const environment = {
      COTERIE_TEST_PROXY: `http://me:${PASSWORD}@${fake.host}`,
      ...(ca === '' ? {} : { NODE_EXTRA_CA_CERTS: join(folder, 'ca.pem') }),
    };
    const on = await stageOn(
      { ...platform, config: named(platform.config), environment },
      named({
        // biome-ignore lint/suspicious/noTemplateCurlyInString: as it stands in config.yaml
        network: { proxy: '${COTERIE_TEST_PROXY}' },
        speech: { base_url: speech.url, model: 'speaker', voice: 'alloy' },
        embeddings: { backend: 'http', base_url: embeddings.url, model: 'test-embed' },
        tracing: { endpoint: collector.url },
        mcp: { servers: { far: { url: tools.url, safe: ['*'] } } },
        tools: { allow: ['search', 'web', 'mcp'], web: { allow_hosts: ['127.0.0.1'] } },
      }),
    );
    closing.push(on.close);
    speech.secondsOf = () => 2;
    const gateway = await on.start();
    platform.command(ANNA, DIRECT, '/voice on');
    await on.replies(DIRECT, 1);
    on.model.reply(({ messages }) =>
      messages.at(-1)?.role === 'tool'
        ? `it says: ${JSON.stringify(messages.at(-1)?.content).match(/words of a page/)}`
        : {
            calls: [
              // Embeddings are asked for with a search.
              { name: 'search_memory', arguments: { query: 'the words of a page' } },
              { name: 'web_fetch', arguments: { url: `${site.url}/x` } },
            ],
          },
    );
    // Sent before the picture: a picture taints the turn, and then only hosts that a person named are fetched without asking.
    platform.say({ from: ANNA, in: DIRECT, text: `read ${site.url}/x` });
    const [, reply, note] = await on.replies(DIRECT, 3);
    expect(reply?.text).toBe('it says: words of a page');
    expect(note?.files).toEqual(['voice note, 2 s']);
    if (hasFiles) {
      platform.say({ from: ANNA, in: DIRECT, text: '', image: { bytes: SMALL_PNG, mimeType: 'image/png' } });
      const showsPicture = () =>
        JSON.stringify(on.model.requests.at(-1)?.body.messages).includes('image/png');
      await eventually(showsPicture, 'the model sees the picture');
      await on.replies(DIRECT, 5);
    }

    const asked = (address: string) =>
      fake.targets.filter((target) => target.endsWith(`:${new URL(address).port}`));
    const servers = [on.model.url, speech.url, embeddings.url, tools.url, site.url, collector.url];
    await eventually(() => servers.every((address) => asked(address).length > 0), 'all were asked for');
    const [section] = Object.values(platform.config).filter((value) => /^(ws|http):/.test(String(value)));
    expect(asked(String(section)).length).toBeGreaterThan(0);
    if (port !== undefined) expect(fake.targets).toContain('mmg.whatsapp.net:443');
    expect(fake.refused()).toBe(0);
    expect(gateway.err()).not.toContain(PASSWORD);

    const checked = run(on.home, ['doctor'], environment);
    await checked.exited;
    expect(checked.out()).toContain(`ok      proxy: http://${fake.host} (network.proxy) for all`);
    expect(checked.out()).not.toContain(PASSWORD);
  });
});

/** A gateway with a model alone: how it asks that, by its variables. */
async function asks(environment: Record<string, string>, network: object = {}) {
  const model = await startFakeModel();
  closing.push(model.close);
  const home = await makeHome({ model: { base_url: model.url, name: 'm' }, network });
  closing.push(home.remove);
  const checked = run(home, ['doctor'], environment);
  await checked.exited;
  return { model, out: checked.out(), err: checked.err() };
}

describe('by the environment', () => {
  test.each(['HTTP_PROXY', 'http_proxy', 'ALL_PROXY'])('%s holds, but for NO_PROXY', async (variable) => {
    const fake = await proxy();
    const environment = { [variable]: `http://me:${PASSWORD}@${fake.host}` };
    const { model, out } = await asks(environment);
    expect(out).toMatch(/^ok +model: /m);
    expect(fake.targets).toContain(new URL(model.url).host);
    expect(out).toContain(
      `http://${fake.host} (${variable}) for ${variable === 'ALL_PROXY' ? 'all' : 'http and ws'}`,
    );
    expect(out).not.toContain(PASSWORD);
    const before = fake.targets.length;
    await asks({ ...environment, NO_PROXY: 'example.com,127.0.0.1' });
    await asks(environment, { proxy: 'off' });
    await asks(environment, { no_proxy: ['127.0.0.0/8'] });
    expect(fake.targets).toHaveLength(before);
  });

  test('SOCKS does, too', async () => {
    const fake = await proxy({ kind: 'socks5' });
    const { model, out } = await asks({ all_proxy: `socks5h://${fake.host}` });
    expect(out).toMatch(/^ok +model: /m);
    expect(fake.targets).toContain(new URL(model.url).host);
  });

  test('what is no proxy is a fault of the configuration, and named', async () => {
    for (const [environment, network, expected] of [
      [
        { HTTPS_PROXY: `ftp://me:${PASSWORD}@x` },
        {},
        /HTTPS_PROXY, a variable of the environment: expected the address/,
      ],
      [{}, { proxy: `htp://me:${PASSWORD}@x` }, /network\.proxy: expected the address of a proxy/],
    ] as const) {
      const { err } = await asks(environment, network);
      expect(err).toMatch(expected);
      expect(err).not.toContain(PASSWORD);
    }
  });

  test('one that refuses its login is said to', async () => {
    const fake = await proxy({ login: 'me:another' });
    const { out } = await asks({ HTTP_PROXY: `http://me:${PASSWORD}@${fake.host}` });
    expect(out).toMatch(
      /^failed +model: .*the proxy http:\/\/127\.0\.0\.1:\d+ \(HTTP_PROXY\) refuses .* HTTP 407: it wants/m,
    );
    expect(out).not.toContain(PASSWORD);
  });
});
