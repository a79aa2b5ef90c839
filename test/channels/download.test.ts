/** Downloads over real sockets: what a link or a redirect reaches, how much, and for how long. */

import type { lookup } from 'node:dns';
import { createServer, type RequestListener, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { type DownloadAsk, download, publicLookup } from '../../src/channels/kit/download.js';
import { manualClock } from '../fakes/clock.js';
import { straight } from '../harness/straight.js';

const servers: Server[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

async function serve(answer: RequestListener) {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url ?? '');
    answer(request, response);
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { root: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

const sendTo = (location: string, status = 302): RequestListener => {
  return (_, response) => void response.writeHead(status, { location }).end();
};

function get(address: string, changed: Partial<DownloadAsk> = {}) {
  const signal = new AbortController().signal;
  return download(address, {
    server: 'the file server',
    maxBytes: 1_000,
    outward: straight,
    signal,
    ...changed,
  });
}

describe('a link', () => {
  test('is followed to the server that the configuration names, and to no other beside it', async () => {
    const there = await serve((_, response) => void response.end('a picture'));
    expect(await get(`${there.root}/x`, { trusted: [there.root] })).toEqual({
      kind: 'fetched',
      bytes: Buffer.from('a picture'),
    });
    expect(await get(`${there.root}/x`)).toMatchObject({ kind: 'gone' });
    expect(await get(`${there.root}/x`, { trusted: ['http://127.0.0.1:9'] })).toMatchObject({ kind: 'gone' });
    expect(there.asked).toEqual(['/x']);
  });

  test.each(['nothing', '/x', 'file:///etc/passwd', 'https://localhost/', 'https://[::ffff:7f00:1]/', ''])(
    'that is none is not asked for again: %s',
    async (address) => {
      const { reason, kind } = (await get(address)) as { reason: string; kind: string };
      expect(kind).toBe('gone');
      expect(reason).toMatch(/^a link to the file server is not followed: it/);
    },
  );
});

describe('a redirect', () => {
  test.each([301, 302, 303, 307, 308])('of %d leads on within the server that is named', async (status) => {
    const there = await serve((request, response) => {
      if (request.url === '/old') sendTo('/new', status)(request, response);
      else response.end('moved');
    });
    expect(await get(`${there.root}/old`, { trusted: [there.root] })).toMatchObject({ kind: 'fetched' });
    expect(there.asked).toEqual(['/old', '/new']);
  });

  test('leads to nothing private', async () => {
    const inside = await serve((_, response) => void response.end('the secrets of this machine'));
    const port = new URL(inside.root).port;
    for (const host of [
      '127.0.0.1',
      'localhost',
      '2130706433',
      '0177.0.0.1',
      '[::ffff:127.0.0.1]',
      '0.0.0.0',
    ]) {
      for (const scheme of ['http', 'https']) {
        const there = await serve(sendTo(`${scheme}://${host}:${port}/latest/meta-data`));
        const found = await get(there.root, { trusted: [there.root] });
        expect(found, `${scheme}://${host}`).toMatchObject({ kind: 'gone' });
      }
    }
    expect(inside.asked).toEqual([]);
  });

  test('neither does the second one', async () => {
    const inside = await serve((_, response) => void response.end('inside'));
    const there = await serve((request, response) => {
      sendTo(request.url === '/' ? '/on' : inside.root)(request, response);
    });
    expect(await get(there.root, { trusted: [there.root] })).toMatchObject({ kind: 'gone' });
    expect(there.asked).toEqual(['/', '/on']);
    expect(inside.asked).toEqual([]);
  });

  test('that goes round ends, and no reason names the address', async () => {
    const there = await serve(sendTo('/bot123:secret/again'));
    const found = await get(`${there.root}/bot123:secret`, { trusted: [there.root] });
    expect(found).toMatchObject({ kind: 'gone' });
    expect(JSON.stringify(found)).not.toContain('secret');
    expect(there.asked).toHaveLength(6);
  });
});

describe('a name', () => {
  /** What a resolver says, one answer after another. */
  const resolver = (...answers: string[][]) =>
    ((_name: string, _options: object, done: (...given: unknown[]) => void) => {
      const found = answers.shift() ?? [];
      const addresses = found.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
      queueMicrotask(() => done(null, addresses));
    }) as unknown as typeof lookup;

  const reach = (port: number, resolve: typeof lookup) =>
    new Promise<string>((done) => {
      const socket = connect({ host: 'rebound.example', port, lookup: publicLookup(resolve) });
      socket.on('connect', () => done(`connected to ${socket.remoteAddress}`));
      socket.on('error', (error) => done(error.message));
    });

  test('that leads into a private network is not connected to, at the first question or at any other', async () => {
    const inside = await serve((_, response) => void response.end('inside'));
    const port = Number(new URL(inside.root).port);
    const local = [['127.0.0.1'], ['::1'], ['::ffff:127.0.0.1', '10.0.0.1'], ['169.254.169.254'], []];
    for (const found of local) expect(await reach(port, resolver(found))).toContain('private network');
    const asked = publicLookup(resolver(['93.184.216.34'], ['127.0.0.1']));
    const look = (all: boolean) =>
      new Promise((done) => asked('x.example', { all }, (error, found) => done(error?.message ?? found)));
    expect(await look(false)).toBe('93.184.216.34');
    expect(await look(true)).toContain('private network');
    expect(inside.asked).toEqual([]);
  });

  test('is connected to where it is public, also if it has private addresses beside', async () => {
    const asked = publicLookup(resolver(['10.0.0.1', '93.184.216.34', '2606:4700::1', '::1']));
    const found = await new Promise((done) => asked('x.example', { all: true }, (_, all) => done(all)));
    expect(found).toEqual([
      { address: '93.184.216.34', family: 4 },
      { address: '2606:4700::1', family: 6 },
    ]);
  });
});

describe('what comes', () => {
  test('is never more than was asked for, said before or not', async () => {
    const said = await serve((_, response) => void response.end(Buffer.alloc(1_001)));
    const endless = await serve((request, response) => {
      const more = setInterval(() => response.write(Buffer.alloc(400)), 1);
      request.on('close', () => clearInterval(more));
    });
    expect(await get(said.root, { trusted: [said.root] })).toEqual({ kind: 'too large' });
    expect(await get(endless.root, { trusted: [endless.root] })).toEqual({ kind: 'too large' });
  });

  test('is not waited for in silence, nor after the caller has ended it', async () => {
    const clock = manualClock();
    const dripping = await serve((_, response) => void response.write('x'));
    const silent = get(dripping.root, { trusted: [dripping.root], silence: { ms: 20_000, clock } });
    await expect.poll(() => dripping.asked.length).toBe(1);
    await clock.advance(20_000);
    expect(await silent).toMatchObject({ kind: 'unreachable' });
    const over = new AbortController();
    const ended = get(dripping.root, { trusted: [dripping.root], signal: over.signal });
    await expect.poll(() => dripping.asked.length).toBe(2);
    over.abort();
    expect(await ended).toMatchObject({ kind: 'unreachable' });
  });

  test('is whole, or it did not come', async () => {
    const half = await serve((_, response) => {
      response.writeHead(200, { 'content-length': 100 });
      response.write('half of it', () => response.destroy());
    });
    expect(await get(half.root, { trusted: [half.root] })).toMatchObject({ kind: 'unreachable' });
  });

  test('is not unpacked: nobody asked for it compressed', async () => {
    const packed = await serve((_, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' }).end('x');
    });
    expect(await get(packed.root, { trusted: [packed.root] })).toMatchObject({ kind: 'gone' });
  });

  test('and a refusal is told with its status', async () => {
    const there = await serve((_, response) => void response.writeHead(410).end());
    expect(await get(there.root, { trusted: [there.root] })).toMatchObject({ kind: 'refused', status: 410 });
  });
});
