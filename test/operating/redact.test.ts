/** What may not be seen in a log, whatever it stands in. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createRedactor } from '../../src/operating/redact.js';

const TOKEN = '123456789:AAF-abcdefghijklmnopqrstuvwxyz_0123';

const redact = (text: string, secrets: readonly string[]) => createRedactor(secrets)(text);

describe('redact', () => {
  it.each([
    [
      'a bot token in a URL',
      `https://api.telegram.org/bot${TOKEN}/getMe`,
      'https://api.telegram.org/bot[redacted]/getMe',
    ],
    ['an encoded one', `/bot${TOKEN.replace(':', '%3A')}/getMe`, '/bot[redacted]/getMe'],
    ['a key', 'key sk-proj-abcdefgh12345 refused', 'key [redacted] refused'],
    ['an authorisation', '{"authorization":"Bearer abc.def"}', '{"authorization":"Bearer [redacted]"}'],
  ])('knows %s by its looks', (_, text, safe) => {
    expect(redact(text, [])).toBe(safe);
  });

  it('leaves ordinary text alone', () => {
    const text = 'at 12:30:15, task-force sk- and the bearer of news: 1234567:short';
    expect(redact(text, [])).toBe(text);
  });

  it('cuts the longer of two secrets that contain each other whole', () => {
    expect(redact('hunter2-long and hunter2', ['hunter2', 'hunter2-long'])).toBe('[redacted] and [redacted]');
  });

  it('ignores what is too short to be a secret, and the empty one', () => {
    expect(redact('abc', ['', 'a', 'abc'])).toBe('abc');
  });

  it('leaves no half of secrets that overlap, with each other or with themselves', () => {
    expect(redact('abcdefghi.', ['abcdef', 'defghi'])).toBe('[redacted].');
    expect(redact('abababab.', ['ababab'])).toBe('[redacted].');
    expect(redact('xx secretsecret', ['secret', 'sec', 'cretsecr'])).toBe('xx [redacted]');
  });

  it('does not find secrets in what it has put there itself', () => {
    expect(redact('a b', ['redacted', 'reda', 'edac', 'dact'])).toBe('a b');
    expect(redact('hunter2 b', ['hunter2', 'redacted', 'reda', 'acted', 'edac'])).toBe('[redacted] b');
  });

  it.each(['u', 'user', 'users', 'user:x'])('finds a password in base64 behind the name %s', (user) => {
    const login = Buffer.from(`${user}:correct-horse?~~`).toString('base64');
    for (const form of [login, login.replaceAll('+', '-').replaceAll('/', '_')]) {
      const safe = redact(`failed: ${form}`, ['correct-horse?~~']);
      expect(safe).toContain('[redacted]');
      expect(safe.length).toBeLessThan(30 + user.length * 2);
    }
    expect(redact(`"authorization":"Basic ${login}"`, [])).toBe('"authorization":"Basic [redacted]"');
  });

  it('finds a secret as it stands in addresses and forms', () => {
    const secret = 'ü /+"~\'();q';
    for (const form of [
      encodeURIComponent(secret),
      encodeURI(secret),
      encodeURIComponent(secret).replace(/%../g, (sign) => sign.toLowerCase()),
      String(new URLSearchParams({ x: secret })),
    ])
      expect(redact(`at ${form} it was`, [secret])).toMatch(/^at (x=)?\[redacted\] it was$/);
  });

  it('leaves JSON what it is where a number is a secret', () => {
    const line = JSON.stringify({ a: 4711471, b: [4711471], c: 'is 4711471,', d: 'x:4711471,' });
    expect(JSON.parse(redact(line, ['4711471']))).toEqual({ a: 0, b: [0], c: 'is [redacted],', d: 'x:0,' });
  });

  it('finds a secret in JSON that stands in JSON', () => {
    const secret = 'quo"te\\d';
    const safe = redact(JSON.stringify({ body: JSON.stringify({ secret }) }), [secret]);
    expect(safe).toContain('[redacted]');
    expect(safe).not.toContain('te\\');
  });

  // An expression that goes back over all it has read would take hours here, not a second.
  it.each([
    ['digits', '2'.repeat(5_000_000)],
    ['almost tokens', '123456789:short '.repeat(300_000)],
    ['a token of megabytes', `123456789:${'a'.repeat(5_000_000)}`],
    ['a key of megabytes', `sk-${'a'.repeat(5_000_000)}`],
    ['hundreds of thousands of keys', 'sk-abcdefgh '.repeat(400_000)],
    ['keys that are none', 'sk-'.repeat(1_600_000)],
    ['spaces after Bearer', `Bearer ${' '.repeat(5_000_000)}`],
    ['Bearer and nothing', 'Bearer x '.repeat(700_000)],
    ['authorisations', 'authorization: '.repeat(300_000)],
    ['marks after an authorisation', `authorization${':'.repeat(5_000_000)}`],
    ['almost the secret', 'a'.repeat(5_000_000)],
    ['the secret, over and over', 'hunter2-secret'.repeat(300_000)],
    ['long base64', Buffer.alloc(3_000_000, 0x5a).toString('base64')],
  ])(
    'is as fast as a text is long: %s',
    (_, text) => {
      const secrets = ['hunter2-secret', `${'a'.repeat(60)}b`, 'aaaa!', '1'.repeat(40)];
      expect(redact(text, [...secrets, '', 'a', '1']).length).toBeLessThanOrEqual(text.length);
    },
    20_000,
  );

  it('finds a secret in text, in JSON and in a URL (property)', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 6, unit: 'grapheme' }), fc.string(), (secret, around) => {
        fc.pre(!around.includes(secret) && !'[redacted]'.includes(secret) && isWellFormed(secret));
        const forms = [secret, JSON.stringify({ secret }), `https://x/${encodeURIComponent(secret)}`];
        for (const form of forms) {
          const safe = redact(`${around} ${form}`, [secret]);
          expect(safe).toContain('[redacted]');
          expect(safe).not.toContain(secret);
        }
      }),
    );
  });
});

function isWellFormed(text: string): boolean {
  return !/[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/.test(text);
}
