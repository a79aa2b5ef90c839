import { describe, expect, it } from 'vitest';
import { dataOf, documentOf } from '../../src/core/file-text.js';

const SIGNS = [
  ...[
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '? ',
    '- ',
    '&a ',
    '*a ',
    '!a ',
    '|\n',
    '"',
    "'",
    '#',
    '%',
    '@',
    '`',
    'a',
  ],
  ...[' ', '\n', '\t', '\r', '\\', 'a: ', 'a:\n ', '- a\n', '{a: ', '[a, ', '{},', '---\n', '...\n', '{"a":'],
  ...['<<: *a\n', '? a\n', '- - ', '{?', '[- ', '{:', '[?'],
];

describe('YAML of others', () => {
  it('takes no square time, whatever it repeats, and ends no process', () => {
    for (const before of ['', 'a: ', 'a: {', 'a: "', '- [']) {
      for (const sign of SIGNS) {
        const source = before + sign.repeat(40_000 / sign.length);
        const began = performance.now();
        const { errors } = documentOf(source);
        const took = performance.now() - began;
        expect(took, JSON.stringify(before + sign)).toBeLessThan(5_000);
        expect(errors.length, JSON.stringify(before + sign)).toBeLessThanOrEqual(10);
      }
    }
  });

  it('refuses what nests too deep or is too long, and says so', () => {
    const told = (source: string) => documentOf(source).errors.map(({ message }) => message);
    expect(told(`a: ${'['.repeat(65)}${']'.repeat(65)}`)).toEqual(['it is nested too deep']);
    expect(told('- '.repeat(20_000))).toEqual(['it is nested too deep']);
    expect(told(`a: ${'b'.repeat(70_000)}`)).toEqual(['it is longer than 65536 characters']);
    expect(told('a: b\n'.repeat(10_000))).toEqual(['it has too many keys and values']);
    expect(() => dataOf('{'.repeat(40_000))).toThrow('it is nested too deep');
  });

  it('reads what files hold, brackets in texts among it', () => {
    const text = '[{'.repeat(300);
    expect(dataOf(`a: "${text}"\nb: |\n  ${text}\nc: 'x'\n`)).toEqual({ a: text, b: `${text}\n`, c: 'x' });
    const nested = `${'['.repeat(64)}1${']'.repeat(64)}`;
    expect(JSON.stringify(dataOf(nested))).toBe(nested);
    const record = Object.fromEntries(Array.from({ length: 500 }, (_, n) => [`key ${n}`, { n, list: [n] }]));
    expect(dataOf(JSON.stringify(record))).toEqual(record);
  });

  it('tells of a mistake in which line it stands, and throws the first', () => {
    expect(documentOf('a: 1\nb: "x\n').errors[0]?.message).toMatch(/quote at line 3, column 1$/);
    expect(() => dataOf('a: 1\na: 2')).toThrow(/unique at line 2, column 1$/);
  });

  it('does not resolve aliases upon aliases', () => {
    const bomb = Array.from(
      { length: 9 },
      (_, n) => `l${n}: &l${n} [${n === 0 ? 'x' : `*l${n - 1},`.repeat(9)}]`,
    );
    expect(() => dataOf(bomb.join('\n'))).toThrow('Excessive alias count');
  });
});
