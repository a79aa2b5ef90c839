/** Connections over real sockets: through proxies of each kind, and straight. */
import { createServer, request as httpRequest, type RequestListener } from 'node:http';
import { createServer as createSecureServer, request as httpsRequest } from 'node:https';
import type { LookupFunction } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { ProxyRefusal } from '../../src/core/network.js';
import { createOutward } from '../../src/network/outward.js';
import { proxyOf } from '../../src/network/rules.js';
import { makeCertificates } from '../fakes/certificate.js';
import { listen } from '../fakes/http-server.js';
import { type FakeProxy, startFakeProxy } from '../fakes/proxy.js';

const LOGIN = 'me:p%3A%20q';
const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const hello: RequestListener = (asked, answer) => void answer.end(`hello ${asked.headers.host}`);

async function proxy(wishes: Parameters<typeof startFakeProxy>[0] = {}): Promise<FakeProxy> {
  const fake = await startFakeProxy(wishes);
  closing.push(fake.close);
  return fake;
}

async function site(answer = hello): Promise<string> {
  const server = await listen(createServer(answer));
  closing.push(server.close);
  return server.url;
}

function by(address: string, except: string[] = []) {
  const named = proxyOf(address, 'network.proxy');
  if (named === null) throw new Error(`${address} is no proxy`);
  return createOutward({ plain: named, secure: named, except, exceptFrom: 'network.no_proxy' });
}

function get(address: string, options: object): Promise<string> {
  return new Promise((resolve, reject) => {
    const ask = address.startsWith('https:') ? httpsRequest : httpRequest;
    ask(address, options, async (response) => {
      let text = '';
      for await (const chunk of response) text += chunk;
      resolve(text);
    })
      .on('error', reject)
      .end();
  });
}

const portOf = (address: string) => new URL(address).port;

describe.each(['http', 'socks5'] as const)('a proxy of %s', (kind) => {
  test('is asked for each connection, and given its login', async () => {
    const fake = await proxy({ kind, login: 'me:p: q' });
    const url = await site();
    const outward = by(`${kind}://${LOGIN}@${fake.host}`);
    const target = `127.0.0.1:${portOf(url)}`;
    expect(await get(url, { agent: outward.agent(false) })).toBe(`hello ${target}`);
    expect(await (await outward.fetch()(url)).text()).toBe(`hello ${target}`);
    expect(fake.targets).toEqual([target, target]);
    // A connection that is kept is used again.
    const agent = outward.agent(false, { idleMs: 5_000 });
    await get(url, { agent });
    await get(url, { agent });
    expect(fake.targets).toHaveLength(3);
    agent.destroy();
    expect(outward.proxyFor({ host: 'a.example', port: 443, secure: true })).toBe(`${kind}://${fake.host}`);
  });

  test('that refuses the login says so, and nobody reads it', async () => {
    const fake = await proxy({ kind, login: 'me:right' });
    const url = await site();
    const agent = by(`${kind}://me:wrong-word@${fake.host}`).agent(false);
    const failed = await get(url, { agent }).catch((error) => error);
    expect(failed).toBeInstanceOf(ProxyRefusal);
    expect(failed.message).toMatch(
      kind === 'http' ? /407.*user and a password/ : /refuses the user and the password/,
    );
    expect(failed.message).toContain(`${kind}://${fake.host} (network.proxy)`);
    expect(failed.message).not.toContain('wrong-word');
    const none = await get(url, { agent: by(`${kind}://${fake.host}`).agent(false) }).catch((error) => error);
    expect(none).toBeInstanceOf(ProxyRefusal);
    expect(fake.refused()).toBe(2);
  });

  test('that refuses a server, or is not there, is named as the reason', async () => {
    const fake = await proxy({ kind, status: kind === 'http' ? 403 : 2 });
    const url = await site();
    const refused = await get(url, { agent: by(`${kind}://${fake.host}`).agent(false) }).catch(
      (error) => error,
    );
    expect(refused.message).toMatch(
      kind === 'http' ? /refuses 127\.0\.0\.1:\d+ with HTTP 403/ : /its rules do not allow/,
    );
    await fake.close();
    const gone = by(`${kind}://${fake.host}`);
    const away = await get(url, { agent: gone.agent(false) }).catch((error) => error);
    expect(away).toBeInstanceOf(ProxyRefusal);
    expect(away.message).toMatch(/cannot be used: .*ECONNREFUSED/);
    expect(
      await gone
        .fetch()(url)
        .catch((error) => error.cause.message),
    ).toMatch(/cannot be used/);
  });

  test('carries TLS to the server, whose certificate is checked by its name', async () => {
    const { ca, cert, key } = makeCertificates(['a.example']);
    const server = createSecureServer({ cert, key }, hello);
    const { url } = await listen(server as never);
    closing.push(() => server.close());
    const port = Number(portOf(url));
    const fake = await proxy({ kind, ports: { 'a.example:443': port, 'b.example:443': port } });
    const outward = by(`${kind}://${fake.host}`);
    expect(await get('https://a.example/', { agent: outward.agent(true), ca })).toBe('hello a.example');
    expect(
      await get('https://b.example/', { agent: outward.agent(true), ca }).catch(({ code }) => code),
    ).toBe('ERR_TLS_CERT_ALTNAME_INVALID');
    expect(await get('https://a.example/', { agent: outward.agent(true) }).catch(({ code }) => code)).toMatch(
      /CERT|SELF_SIGNED|UNABLE/,
    );
    expect(fake.targets).toEqual(['a.example:443', 'b.example:443', 'a.example:443']);
  });

  test('carries a socket of ws', async () => {
    const server = createServer();
    const sockets = new WebSocketServer({ server });
    sockets.on('connection', (socket) => socket.send('hello'));
    const { url, close } = await listen(server);
    closing.push(close);
    const fake = await proxy({ kind });
    const socket = new WebSocket(url.replace('http', 'ws'), {
      agent: by(`${kind}://${fake.host}`).agent(false),
    });
    expect(await new Promise((resolve) => socket.once('message', (data) => resolve(String(data))))).toBe(
      'hello',
    );
    expect(fake.targets).toHaveLength(1);
    socket.terminate();
    for (const each of sockets.clients) each.terminate();
  });
});

test('a host that is excepted is connected to straight', async () => {
  const fake = await proxy();
  const url = await site();
  const outward = by(`http://${fake.host}`, ['127.0.0.1']);
  await get(url, { agent: outward.agent(false) });
  await (await outward.fetch()(url)).text();
  expect(fake.targets).toEqual([]);
});

describe('a name that is looked up under rules', () => {
  const found =
    (address: string): LookupFunction =>
    (_name, _options, done) =>
      done(null, address, 4);
  const notFound =
    (code: string): LookupFunction =>
    (_name, _options, done) =>
      done(Object.assign(new Error(`${code} here`), { code }), '');

  test('is refused before the proxy is asked', async () => {
    const fake = await proxy();
    const outward = by(`http://${fake.host}`);
    for (const secure of [true, false]) {
      const agent = outward.agent(secure, { lookup: notFound('EPRIVATE') });
      const address = `${secure ? 'https' : 'http'}://a.example/`;
      expect(await get(address, { agent }).catch(({ message }) => message)).toBe('EPRIVATE here');
    }
    expect(fake.targets).toEqual([]);
  });

  test('goes to the proxy as the address that was looked at, or as the name that a certificate proves', async () => {
    const fake = await proxy({ status: 502 });
    const outward = by(`http://${fake.host}`);
    const lookup = found('192.0.2.7');
    await get('http://a.example/', { agent: outward.agent(false, { lookup }) }).catch(() => {});
    await get('https://a.example/', { agent: outward.agent(true, { lookup }) }).catch(() => {});
    // Where nothing can be looked up but by the proxy.
    await get('https://b.example/', { agent: outward.agent(true, { lookup: notFound('ENOTFOUND') }) }).catch(
      () => {},
    );
    await get('http://b.example/', { agent: outward.agent(false, { lookup: notFound('ENOTFOUND') }) }).catch(
      () => {},
    );
    expect(fake.targets).toEqual(['192.0.2.7:80', 'a.example:443', 'b.example:443']);
  });
});
