/** Where `web_fetch` goes, and where it does not: to nothing beside the gateway, by whatever name or way. */

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isPublicAddress } from '../../../src/core/network.js';
import {
  allowedHost,
  ENDLESS_REDIRECTS,
  NO_ADDRESS,
  NOT_PUBLIC,
  REDIRECTED_AWAY,
  systemNetwork,
  WITH_LOGIN,
} from '../../../src/tools/web/request.js';
import { straight } from '../../harness/straight.js';
import { fetchFrom, fetchPage, networkOf, page, sendTo, serve, toolWith } from './support.js';

const PUBLIC = '93.184.216.34';
const hello = page('text/plain', 'hello');

describe('an address', () => {
  it.each([
    ...[
      'http://127.0.0.1',
      'http://[::1]',
      'http://0',
      'http://2130706433',
      'http://0177.0.0.1',
      'http://0x7f.1',
    ],
    ...['http://127.1', 'http://[::ffff:127.0.0.1]', 'http://[64:ff9b::7f00:1]', 'http://127.0.0.1.'],
    ...['https://10.0.0.1', 'http://192.168.1.1:8080/x', 'http://172.16.0.1', 'http://100.64.0.1'],
    ...['http://169.254.169.254/latest/meta-data/', 'http://168.63.129.16', 'http://[fd00:ec2::254]'],
    ...['http://[fe80::1]', 'http://[2002:7f00:1::]', 'http://224.0.0.1', 'http://192.0.2.1', 'http://[::]'],
    ...[
      'http://localhost',
      'http://LOCALHOST.',
      'http://a.localhost:1',
      'http://１２７.０.０.１',
      'http://①②⑦.1',
    ],
  ])('that is not public is refused without a connection: %s', async (url) => {
    const network = networkOf({});
    const result = await fetchPage(url, { network });
    expect(result).toEqual({ content: NOT_PUBLIC, failed: true });
    expect([network.connected, network.looked]).toEqual([[], []]);
  });

  it.each(['', 'nothing', '/x', 'file:///etc/passwd', 'ftp://example.com/', 'data:text/plain,x', 'http://'])(
    'that is none of a page is refused: %j',
    async (url) => {
      expect(await fetchPage(url, { network: networkOf({}) })).toEqual({ content: NO_ADDRESS, failed: true });
    },
  );

  it.each([
    'http://[fe80::1%25eth0]/',
    'http://[::1%lo]/',
    'http://1.2.3.4.5/',
    'http://a b/',
    'http://256.1.1.1/',
  ])('that no server can have is refused: %s', async (url) => {
    const network = networkOf({});
    expect((await fetchPage(url, { network })).failed).toBe(true);
    expect(network.connected).toEqual([]);
  });

  it('with a login is refused, whatever it looks like', async () => {
    const network = networkOf({ 'example.com': [PUBLIC] });
    for (const url of ['http://a:b@example.com/', 'https://example.com@127.0.0.1/', 'http://a@example.com']) {
      expect((await fetchPage(url, { network })).content).toBe(WITH_LOGIN);
    }
    expect(network.connected).toEqual([]);
  });

  it('is fetched at the very addresses that were looked up, with the name for the certificate', async () => {
    const site = await serve(hello);
    const network = networkOf({ 'example.com': [PUBLIC], 'xn--mller-kva.example': [PUBLIC] }, site);
    expect((await fetchPage('http://example.com./x#part', { network })).content).toMatch(/\n\nhello$/);
    expect((await fetchPage('http://Müller.example/', { network })).failed).toBe(false);
    const addresses = [{ address: PUBLIC, family: 4 }];
    expect(network.connected).toEqual([
      { host: 'example.com', port: 80, secure: false, addresses },
      { host: 'xn--mller-kva.example', port: 80, secure: false, addresses },
    ]);
    expect(site.asked).toEqual(['/x', '/']);
  });

  it('of a name that is nobody’s gets the same sentence as one that is private', async () => {
    const network = networkOf({ 'db.internal': ['10.0.0.5'] });
    const [there, nowhere] = [
      await fetchPage('http://db.internal/', { network }),
      await fetchPage('http://no.internal/', { network }),
    ];
    expect(there).toEqual(nowhere);
    expect(there.content).toBe(NOT_PUBLIC);
  });

  it.each([
    ['a private address', ['10.0.0.1']],
    ['a public and a private one', [PUBLIC, '127.0.0.1']],
    ['a public and a private one of version 6', [PUBLIC, '::1']],
    ['one that stands for a private one', ['64:ff9b::7f00:1']],
    ['nothing that is an address', ['not an address']],
  ])('of a name with %s is refused', async (_, addresses) => {
    const network = networkOf({ 'example.com': addresses });
    expect((await fetchPage('https://example.com/', { network })).content).toBe(NOT_PUBLIC);
    expect(network.connected).toEqual([]);
  });

  it('of a name that leads elsewhere the second time is asked for once in each request', async () => {
    const site = await serve((request, response) => {
      if (request.url === '/') sendTo('/second')(request, response);
      else hello(request, response);
    });
    let times = 0;
    const network = networkOf({ 'rebind.example': () => (times++ === 0 ? [PUBLIC] : ['127.0.0.1']) }, site);
    expect((await fetchPage('http://rebind.example/', { network })).content).toBe(NOT_PUBLIC);
    expect(site.asked).toEqual(['/']);
    expect(network.connected.map(({ addresses }) => addresses.map(({ address }) => address))).toEqual([
      [PUBLIC],
    ]);
  });

  it('that is this machine’s own is refused, though it be public', async () => {
    const network = { ...networkOf({ 'me.example': [PUBLIC] }), own: () => [PUBLIC] };
    expect((await fetchPage('http://me.example/', { network })).content).toBe(NOT_PUBLIC);
    expect((await fetchPage(`http://${PUBLIC}/`, { network })).content).toBe(NOT_PUBLIC);
    for (const host of [`[::ffff:${PUBLIC}]`, `[64:ff9b::${PUBLIC}]`]) {
      expect((await fetchPage(`http://${host}/`, { network })).content).toBe(NOT_PUBLIC);
    }
    const mapped = { ...network, ...networkOf({ 'me.example': [`::ffff:${PUBLIC}`] }), own: network.own };
    expect((await fetchPage('http://me.example/', { network: mapped })).content).toBe(NOT_PUBLIC);
    expect(network.connected).toEqual([]);
    expect(systemNetwork(straight).own()).toContain('127.0.0.1');
  });

  it('is looked up by the system itself only where the operator named it', async () => {
    const site = await serve(hello);
    const settings = { allowHosts: [`localhost:${site.port}`] };
    expect((await fetchPage(`http://localhost:${site.port}/`, { settings })).content).toMatch(/hello$/);
    expect((await fetchPage('http://no-such-name.invalid/')).content).toBe(NOT_PUBLIC);
  });
});

describe('a redirect', () => {
  it.each([
    ...[
      'http://169.254.169.254/latest/',
      'http://127.0.0.1:1/',
      'http://[::1]/',
      '//2130706433/',
      'http://localhost/',
    ],
  ])('to %s is not followed', async (location) => {
    const site = await serve(sendTo(location));
    const network = networkOf({ 'example.com': [PUBLIC] }, site);
    expect((await fetchPage('http://example.com/', { network })).content).toBe(NOT_PUBLIC);
    expect(network.connected).toHaveLength(1);
  });

  it.each(['file:///etc/passwd', 'ftp://example.com/', 'javascript:alert(1)', 'data:text/html,x', 'http://'])(
    'to %s is not followed',
    async (location) => {
      const site = await serve(sendTo(location));
      expect(await fetchFrom(site)).toEqual({ content: REDIRECTED_AWAY, failed: true });
    },
  );

  it('to an address with a login is not followed', async () => {
    const site = await serve(sendTo('http://a:b@example.com/'));
    expect((await fetchFrom(site)).content).toBe(WITH_LOGIN);
  });

  it('to itself is followed five times', async () => {
    const site = await serve(sendTo('/'));
    expect(await fetchFrom(site)).toEqual({ content: ENDLESS_REDIRECTS, failed: true });
    expect(site.asked).toHaveLength(6);
  });

  it.each([301, 302, 303, 307, 308])('of %d leads to the page, whose address is told', async (status) => {
    const site = await serve((request, response) => {
      if (request.url === '/old') sendTo('/new?a=1', status)(request, response);
      else hello(request, response);
    });
    const { content } = await fetchFrom(site, '/old');
    expect(content).toContain(`Address: ${site.url}/new?a=1\n`);
    expect(content).toMatch(/hello$/);
  });

  it('from an allowed host leads to no other that is private', async () => {
    const inside = await serve(hello);
    const site = await serve(sendTo(`${inside.url}/secrets`));
    expect((await fetchFrom(site)).content).toBe(NOT_PUBLIC);
    expect(inside.asked).toEqual([]);
    const both = { allowHosts: [site.host, inside.host] };
    expect((await fetchFrom(site, '/', { settings: both })).content).toMatch(/hello$/);
  });

  it('to another server is only told of where words from outside may have chosen the address', async () => {
    const site = await serve((request, response) => {
      if (request.headers.host === 'example.com') sendTo('http://evil.example/?q=secret')(request, response);
      else hello(request, response);
    });
    const network = networkOf({ 'example.com': [PUBLIC], 'evil.example': [PUBLIC] }, site);
    const { content, failed } = await fetchPage('http://example.com/', {
      network,
      context: { isTainted: true },
    });
    expect(failed).toBe(true);
    expect(content).toMatch(/leads on to another server, .* http:\/\/evil\.example\/\?q=secret$/);
    expect(network.looked).toEqual(['example.com']);
    expect((await fetchPage('http://example.com/', { network })).failed).toBe(false);
  });

  it('between a name and the same with www is followed all the same', async () => {
    const site = await serve((request, response) => {
      if (request.headers.host === 'example.com') sendTo('http://www.example.com/')(request, response);
      else hello(request, response);
    });
    const network = networkOf({ 'example.com': [PUBLIC], 'www.example.com': [PUBLIC] }, site);
    expect((await fetchPage('http://example.com/', { network, context: { isTainted: true } })).failed).toBe(
      false,
    );
  });
});

describe('a host that the operator allows', () => {
  it.each([
    ['nas.lan', { host: 'nas.lan', port: null }],
    ['NAS.lan:8080', { host: 'nas.lan', port: 8080 }],
    ['nas.lan:80', { host: 'nas.lan', port: 80 }],
    ['192.168.1.5', { host: '192.168.1.5', port: null }],
    ['127.1:9', { host: '127.0.0.1', port: 9 }],
    ['fd00::5', { host: 'fd00::5', port: null }],
    ['[fd00:0::5]:8080', { host: 'fd00::5', port: 8080 }],
    ['müller.lan', { host: 'xn--mller-kva.lan', port: null }],
    ['http://nas.lan:1/', { host: 'nas.lan', port: 1 }],
    ['http://nas.lan/x', null],
    ['10.0.0.0/8', null],
    ['user@nas.lan', null],
    ['nas.lan:99999', null],
    ['a b', null],
    ['', null],
    [':80', null],
  ])('is %j', (listed, host) => expect(allowedHost(listed)).toEqual(host));

  it('is fetched on its port alone, where it has one', async () => {
    const [site, other] = [await serve(hello), await serve(hello)];
    const settings = { allowHosts: [site.host] };
    expect((await fetchPage(`${site.url}/`, { settings })).failed).toBe(false);
    expect((await fetchPage(`${other.url}/`, { settings })).content).toBe(NOT_PUBLIC);
    expect((await fetchPage(`${other.url}/`, { settings: { allowHosts: ['127.0.0.1'] } })).failed).toBe(
      false,
    );
    expect(other.asked).toEqual(['/']);
  });

  it('as an address is that also where a name leads to it', async () => {
    const site = await serve(hello);
    const network = networkOf({ 'nas.example': ['192.168.1.5'] }, site);
    const settings = { allowHosts: ['192.168.1.5'] };
    expect((await fetchPage('http://nas.example/', { network, settings })).failed).toBe(false);
  });
});

describe('what the call reaches', () => {
  it.each([
    ['https://Example.com./x?y', { kind: 'host', host: 'example.com' }],
    ['http://müller.example:8080', { kind: 'host', host: 'xn--mller-kva.example' }],
    ['http://[::1]/', { kind: 'host', host: '[::1]' }],
    ['file:///etc/passwd', null],
    ['nonsense', null],
  ])('is the host of %s', (url, reach) => {
    expect(toolWith().reachesOut?.({ url }, undefined as never)).toEqual(reach);
  });

  it('taints whoever reads it, and is a read', () => {
    expect(toolWith({ settings: { timeoutSeconds: 7 } })).toMatchObject({
      ...{ name: 'web_fetch', risk: 'low', isFromOutside: true, timeoutMs: 12_000 },
    });
  });

  it('is nothing without an authorisation', async () => {
    const network = networkOf({ 'example.com': [PUBLIC] });
    const result = await fetchPage('http://example.com/', { network, context: { authorisation: undefined } });
    expect(result.content).toMatch(/^Permission denied/);
    expect(network.connected).toEqual([]);
  });
});

describe('whatever is asked for', () => {
  const octet = fc.nat(255);
  const v4 = fc.oneof(
    fc.tuple(octet, octet, octet, octet).map((parts) => parts.join('.')),
    fc.nat(2 ** 32 - 1).map(String),
    fc.nat(2 ** 32 - 1).map((number) => `0x${number.toString(16)}`),
    fc.tuple(octet, fc.nat(2 ** 24 - 1)).map(([first, rest]) => `0${first.toString(8)}.${rest}`),
    fc.constantFrom('127.0.0.1', '10.1.2.3', '169.254.169.254', PUBLIC, '0'),
  );
  const v6 = fc.oneof(
    fc.ipV6(),
    v4.map((address) => `::ffff:${address}`),
    v4.map((address) => `64:ff9b::${address}`),
    fc.constantFrom('::1', 'fe80::1', 'fd00::1', '2606:4700::6810:84e5', '2002:7f00:1::'),
  );
  const name = fc.constantFrom('a.example', 'b.example', 'localhost', 'c.localhost', 'd.example.');
  const host = fc.oneof(
    v4,
    v6.map((address) => `[${address}]`),
    name,
    fc.domain(),
  );
  const url = fc.oneof(
    fc
      .tuple(
        fc.constantFrom('http', 'https', 'file', 'ftp'),
        fc.constantFrom('', 'u@', 'u:p@'),
        host,
        fc.webPath(),
      )
      .map(([scheme, login, host, path]) => `${scheme}://${login}${host}${path}`),
    fc.webUrl(),
    fc.string(),
  );
  const answers = fc.array(
    fc.oneof(fc.ipV4(), fc.ipV6(), fc.constantFrom('127.0.0.1', '::1', PUBLIC, PUBLIC, '1.1.1.1')),
    {
      maxLength: 3,
    },
  );

  it('there is no connection to what is not public, also by redirects and names that change', async () => {
    const jumps: string[] = [];
    const site = await serve((request, response) => {
      const next = jumps.shift();
      if (next === undefined) hello(request, response);
      // Node itself refuses to send some of what fast-check writes.
      else sendTo(encodeURI(next.replace(/\p{Surrogate}/gu, '')))(request, response);
    });
    let connections = 0;
    await fc.assert(
      fc.asyncProperty(
        url,
        fc.array(url, { maxLength: 3 }),
        fc.array(answers, { maxLength: 4 }),
        async (first, redirects, found) => {
          jumps.splice(0, jumps.length, ...redirects);
          const left = [...found];
          const network = networkOf({}, site);
          network.addressesOf = async () =>
            (left.shift() ?? []).map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
          network.connect = ((connect) => async (to, signal) => {
            connections++;
            for (const { address } of to.addresses) expect(isPublicAddress(address)).toBe(true);
            expect(to.addresses.length).toBeGreaterThan(0);
            // No TLS on this server: what it sees is enough.
            if (to.secure) throw new Error('not further');
            return connect(to, signal);
          })(network.connect);
          await fetchPage(first, { network }).catch(() => {});
        },
      ),
      { numRuns: 1_000 },
    );
    expect(connections).toBeGreaterThan(20);
  });
});
