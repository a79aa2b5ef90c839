/** What may not be seen in a log, whatever it stands in. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { redact } from '../../src/operating/redact.js';

const TOKEN = '123456789:AAF-abcdefghijklmnopqrstuvwxyz_0123';

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
