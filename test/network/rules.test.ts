/** Which proxy a connection takes, by the key and the environment. */
import { describe, expect, test } from 'vitest';
import { Fault } from '../../src/core/errors.js';
import { proxiesOf, proxyFor, proxyOf, shownProxy } from '../../src/network/rules.js';

const LAN = 'http://proxy.lan:3128';

function through(
  environment: Record<string, string>,
  address: string,
  keys: { proxy?: string; no_proxy?: string[] } = {},
): string | null {
  const url = new URL(address);
  const secure = url.protocol === 'https:' || url.protocol === 'wss:';
  const proxies = proxiesOf(
    { proxy: keys.proxy ?? null, no_proxy: keys.no_proxy ?? null },
    environment,
    (message) => new Fault('configuration', message),
  );
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const found = proxyFor(proxies, { host, secure, port: Number(url.port || (secure ? 443 : 80)) });
  return found === null ? null : `${shownProxy(found)} ${found.source}`;
}

describe('the proxy', () => {
  test.each<[string, Record<string, string>, string, string | null]>([
    ['none', {}, 'https://a.example/', null],
    ['by the kind of address', { HTTPS_PROXY: LAN }, 'https://a.example/', `${LAN} HTTPS_PROXY`],
    ['not by another kind', { HTTPS_PROXY: LAN }, 'http://a.example/', null],
    ['of plain addresses', { HTTP_PROXY: LAN }, 'http://a.example/', `${LAN} HTTP_PROXY`],
    [
      'in small letters first',
      { http_proxy: LAN, HTTP_PROXY: 'http://other:1' },
      'http://a.example/',
      `${LAN} http_proxy`,
    ],
    ['of all', { ALL_PROXY: 'socks5://s.lan' }, 'wss://a.example/', 'socks5://s.lan:1080 ALL_PROXY'],
    [
      'of its kind before that of all',
      { all_proxy: 'socks5://s', https_proxy: LAN },
      'https://a.example/',
      `${LAN} https_proxy`,
    ],
    ['empty is none', { HTTPS_PROXY: ' ', ALL_PROXY: '' }, 'https://a.example/', null],
    ['without a scheme', { HTTPS_PROXY: 'proxy.lan:3128' }, 'https://a.example/', `${LAN} HTTPS_PROXY`],
    [
      'its port by its kind',
      { HTTPS_PROXY: 'https://p.lan' },
      'https://a.example/',
      'https://p.lan:443 HTTPS_PROXY',
    ],
    [
      'of version 6',
      { HTTPS_PROXY: 'http://[2001:db8::1]:8080' },
      'https://a.example/',
      'http://[2001:db8::1]:8080 HTTPS_PROXY',
    ],
  ])('%s', (_name, environment, address, expected) => {
    expect(through(environment, address)).toBe(expected);
  });

  test('of the key goes before all of the environment, and off is none', () => {
    const environment = { HTTPS_PROXY: 'http://other:1', HTTP_PROXY: 'http://other:1' };
    expect(through(environment, 'https://a.example/', { proxy: LAN })).toBe(`${LAN} network.proxy`);
    expect(through(environment, 'http://a.example/', { proxy: LAN })).toBe(`${LAN} network.proxy`);
    expect(through(environment, 'https://a.example/', { proxy: 'off' })).toBeNull();
  });

  test.each([
    'http://',
    'ftp://p:1',
    'http://p:99999',
    'http://p/path',
    'http://p?x',
    'socks4://p',
    'http://%zz@p',
    'a b',
    'http://p:0',
  ])('that is none is a fault which names the variable: %s', (address) => {
    expect(proxyOf(address, '')).toBeNull();
    expect(() => through({ https_proxy: address }, 'https://a.example/')).toThrow(
      /https_proxy.*expected the address of a proxy/,
    );
    // It may hold a password.
    expect(() => through({ https_proxy: `${address}hunter2` }, 'https://a.example/')).not.toThrow(/hunter2/);
  });

  test('has a login as it was written in the address', () => {
    expect(proxyOf('http://me%40x:p%3Aq@proxy.lan', 'x')).toMatchObject({
      user: 'me@x',
      password: 'p:q',
      address: 'http://me%40x:p%3Aq@proxy.lan',
    });
    // Without a scheme, too: what hides passwords finds them in whole addresses.
    expect(proxyOf('me:hunter2@proxy.lan:1', 'x')).toMatchObject({
      address: 'http://me:hunter2@proxy.lan:1',
    });
  });
});

describe('hosts without it', () => {
  test.each<[string, string, boolean]>([
    ['*', 'https://a.example/', true],
    ['a.example', 'https://a.example/', true],
    ['A.Example', 'https://a.example/', true],
    ['example', 'https://a.example/', true],
    ['.example', 'https://a.example/', true],
    ['*.example', 'https://a.example/', true],
    ['ample', 'https://a.example/', false],
    ['b.example', 'https://a.example/', false],
    ['a.example:443', 'https://a.example/', true],
    ['a.example:80', 'https://a.example/', false],
    ['x, a.example', 'https://a.example/', true],
    ['x a.example', 'https://a.example/', true],
    ['10.1.2.3', 'https://10.1.2.3/', true],
    ['10.0.0.0/8', 'https://10.1.2.3/', true],
    ['10.0.0.0/16', 'https://10.1.2.3/', false],
    ['10.0.0.0/99', 'https://10.1.2.3/', false],
    ['10.1.2.3:8443', 'https://10.1.2.3:8443/', true],
    ['10.1.2.3:8443', 'https://10.1.2.3/', false],
    ['2001:db8::1', 'https://[2001:db8::1]/', true],
    ['[2001:db8::1]', 'https://[2001:db8::1]/', true],
    ['[2001:db8::1]:443', 'https://[2001:db8::1]/', true],
    ['2001:db8::/32', 'https://[2001:db8:1::2]/', true],
    ['/', 'https://10.1.2.3/', false],
    [',', 'https://a.example/', false],
  ])('NO_PROXY=%s and %s: %s', (listed, address, isWithout) => {
    expect(through({ HTTPS_PROXY: LAN, NO_PROXY: listed }, address) === null).toBe(isWithout);
  });

  test('are those of the key where it is there, also none', () => {
    const environment = { HTTPS_PROXY: LAN, NO_PROXY: 'a.example' };
    expect(through(environment, 'https://a.example/', { no_proxy: [] })).not.toBeNull();
    expect(through(environment, 'https://b.example/', { no_proxy: ['b.example'] })).toBeNull();
    expect(through(environment, 'https://a.example/', { proxy: LAN })).toBeNull();
  });

  test.each(['localhost', '127.0.0.1', '[::1]', 'my.localhost', '127.8.0.1'])(
    'this machine itself (%s), but by a proxy on it',
    (host) => {
      expect(through({ HTTP_PROXY: LAN }, `http://${host}:11434/`)).toBeNull();
      expect(through({ HTTP_PROXY: 'http://127.0.0.1:7890' }, `http://${host}:11434/`)).not.toBeNull();
      expect(
        through({ HTTP_PROXY: 'http://localhost:7890', NO_PROXY: '*' }, `http://${host}:11434/`),
      ).toBeNull();
    },
  );
});
