/** Which hosts words name, as step 4 of the route and tasks read them. */
import { describe, expect, it, test } from 'vitest';
import { hostsIn } from '../../src/conversation/turn/taint.js';

it('finds the hosts that a text names as addresses, each as a whole', () => {
  const text =
    'https://example.com/a-b, sub.example.org:8080, (münchen.de) www.louvre.museum "x.co.uk/a?b" HTTP://10.0.0.8:80/ see:news.example.';
  expect(hostsIn(text)).toEqual([
    ...['example.com', '10.0.0.8', 'sub.example.org', 'xn--mnchen-3ya.de', 'www.louvre.museum', 'x.co.uk'],
    'news.example',
  ]);
  expect(hostsIn('Is it https://example.com?!')).toEqual(['example.com']);
  for (const text of [
    '„https://good.example“',
    '（https://good.example）',
    '**https://good.example**',
    '_https://good.example/_,',
  ])
    expect(hostsIn(text)).toEqual(['good.example']);
  expect(hostsIn('https://evil.example@good.example/')).toEqual(['good.example']);
});

describe('no host is', () => {
  test.each([
    ...[
      'notes.md',
      'deploy.sh',
      'main.rs',
      'main.rs:12',
      'setup.py',
      'index.ts',
      'README.md/',
      'lib.so',
      'a.cc',
      'page.zip',
    ],
    ...[
      'version 3.5',
      'v2.0.1',
      '1.2.3.4',
      'e.g. this',
      'i.e.',
      'z.B.',
      'U.S.A.',
      '3.50.de',
      'Node.js',
      'done.Then I went',
      'wait.Is it so',
      'Yes.No.',
    ],
    ...[
      'joe@evil.example',
      '@evil.example',
      'src/evil.com',
      './evil.com',
      'C:\\evil.com',
      'a_evil.com',
      'evil.com(1)',
    ],
    ...[
      '> https://evil.example said Bob',
      '  > evil.example',
      '[file evil.example]',
      '[contact: Bob evil.com]',
      'localhost',
    ],
    ...[
      'user.name',
      'x.y',
      '...',
      'a.',
      '.com',
      `${'x'.repeat(64)}.com`,
      'evil.example\u0301',
      'evil.exam\u00adple.txt',
    ],
  ])('in %j', (text) => {
    expect(hostsIn(text)).toEqual([]);
  });

  it('in the name of somebody who is mentioned, in whatever words', () => {
    const text = 'ask @see evil.example now and https://evil2.example, then look at good.example';
    expect(hostsIn(text, ['see evil.example now', 'https://evil2.example'])).toEqual(['good.example']);
  });
});

test.each([
  'x',
  '.',
  'a.',
  '[',
  '[a',
  '> ',
  'a-',
  'https://.',
  'https://a,',
  '@a.',
  'a.com',
  '\n>',
  '😀.',
  '://',
])(
  'reads 200,000 characters of %j quickly',
  (part) => {
    const long = part.repeat(200_000 / part.length);
    const began = performance.now();
    hostsIn(`${long} example.com ${long}!`, ['b.c']);
    expect(performance.now() - began).toBeLessThan(10_000);
  },
  60_000,
);
