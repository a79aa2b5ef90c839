import { describe, expect, it } from 'vitest';
import { isPublicAddress, PRIVATE, refusalOf } from '../../src/core/network.js';

const refused = (address: string, trusted: string[] = []) => refusalOf(new URL(address), trusted);

describe('an address from outside', () => {
  it.each([
    ...[
      '127.0.0.1',
      '127.1',
      '2130706433',
      '0177.0.0.1',
      '0x7f.1',
      '0x7f000001',
      '127.0.0.1.',
      '0',
      '0.0.0.0',
    ],
    ...['10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1', '169.254.169.254', '169.254.170.2'],
    ...['100.64.0.1', '100.100.100.200', '100.127.255.255', '192.0.0.1', '192.0.0.192', '198.18.0.1'],
    ...['198.19.255.255', '224.0.0.1', '239.255.255.255', '240.0.0.1', '255.255.255.255', '168.63.129.16'],
    ...['[::1]', '[::]', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[::ffff:a9fe:a9fe]', '[::ffff:0:1]'],
    ...['[64:ff9b::7f00:1]', '[64:ff9b::10.0.0.1]', '[64:ff9b::1]', '[64:ff9b:1::1]', '[::127.0.0.1]'],
    ...['[fe80::1]', '[febf::1]', '[fc00::1]', '[fd00:ec2::254]', '[ff02::1]', '[2002:7f00:1::1]'],
    ...['[2001::1]', '[2001:db8::1]', '[100::1]', '[0:0:0:0:0:ffff:7f00:0001]', '[fec0::1]'],
    ...['localhost', 'localhost.', 'LOCALHOST', 'a.localhost', 'a.localhost.'],
    ...['１２７.０.０.１', '①②⑦.0.0.1', '%31%32%37.0.0.1'],
  ])('is not followed to %s', (host) => {
    expect(refused(`https://${host}/x`)).toBe(PRIVATE);
  });

  it.each([
    ...['cdn.discordapp.com', 'mmg.whatsapp.net', 'example.com.', '1.1.1.1', '172.32.0.1', '100.128.0.1'],
    ...['[2606:4700::6810:84e5]', '[2a00:1450:4001::1]', '[64:ff9b::1.1.1.1]', '[::ffff:1.1.1.1]'],
  ])('is followed to %s', (host) => {
    expect(refused(`https://${host}/x`)).toBeNull();
    expect(refused(`http://${host}/x`)).toBe('it is not https');
  });

  it.each([
    'http://good@127.0.0.1/',
    'https://good:word@example.com/',
    'https://cdn.discordapp.com@127.0.0.1/',
  ])('is not followed with a login, whatever it looks like: %s', (address) => {
    expect(refused(address)).toBe('it holds a login');
  });

  it.each(['file:///etc/passwd', 'ftp://example.com/', 'data:text/plain,x', 'gopher://127.0.0.1:6379/'])(
    'is not followed elsewhere than on the web: %s',
    (address) => {
      expect(refused(address)).toBe('it is not https');
    },
  );

  it('is followed to what the configuration names, and to nothing beside it', () => {
    const trusted = ['http://127.0.0.1:8081'];
    expect(refused('http://127.0.0.1:8081/file/bot1', trusted)).toBeNull();
    expect(refused('http://127.1:8081/file', trusted)).toBeNull();
    expect(refused('http://127.0.0.1:8082/', trusted)).not.toBeNull();
    expect(refused('https://127.0.0.1:8081/', trusted)).toBe(PRIVATE);
    expect(refused('http://user@127.0.0.1:8081/', trusted)).not.toBeNull();
  });
});

it('what a name led to is public or not, in every form a resolver gives', () => {
  const local = [
    '127.0.0.1',
    '::1',
    '::ffff:127.0.0.1',
    'fe80::1%eth0',
    '10.1.2.3',
    '',
    'localhost',
    '127.1',
  ];
  expect(local.filter(isPublicAddress)).toEqual([]);
  const open = ['8.8.8.8', '2606:4700::1', '::ffff:8.8.8.8', '64:ff9b::808:808'];
  expect(open.filter(isPublicAddress)).toEqual(open);
});
