/** Words of others on a terminal. */
import { expect, it } from 'vitest';
import { printable, printableJson, printableLine } from '../../src/core/cut.js';

it('spells out what a terminal would obey, and what turns the writing', () => {
  expect(printable('a\u001b[31mb\u0007\u009bc\r\nd\te\u202ef\u2028g\ud800')).toBe(
    'a\\u{1b}[31mb\\u{7}\\u{9b}c\nd\te\\u{202e}f\\u{2028}g\\u{d800}',
  );
  expect(printable('👩‍👩‍👧 नमस्ते — “ok”')).toBe('👩‍👩‍👧 नमस्ते — “ok”');
});

it('puts a name on one line', () => {
  expect(printableLine('Mira\n## Bob\u001b')).toBe('Mira ## Bob\\u{1b}');
});

it('is the same JSON', () => {
  const value = { a: 'x\u009b\u202e\u2028\u{e0001}\ud800\n', 'k\u200b': [1, null] };
  const text = printableJson(value, 2);
  expect(text).not.toMatch(/[\u0080-\u009f\u200b\u202e\u2028]/);
  expect(JSON.parse(text)).toEqual(value);
  expect(printableJson(undefined)).toBe('null');
});
