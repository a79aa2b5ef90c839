/** LaTeX: every sign of it is seen, and none is taken for markup, by us or by the platform. Money is no formula. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parse } from '../../src/channels/markdown/parse.js';
import { SEEN } from './reading/platforms.js';
import { type Letter, visible } from './reading/seen.js';

const WAYS: [string, string][] = [
  ['$', '$'],
  ['$$', '$$'],
  ['\\(', '\\)'],
  ['\\[', '\\]'],
];
const tight = (text: string) => text.replace(/\s/g, '');
const textOf = (seen: Letter[]) =>
  visible(seen)
    .map(({ letter }) => letter)
    .join('');
const EMPHASIS = ['bold', 'italic', 'strike', 'underline'];

const piece = fc.constantFrom(
  ...[
    'x',
    '2',
    'a_k',
    '_i',
    '^{n}',
    '_{k=1}',
    '\\hat{x}',
    '\\frac{a}{b}',
    '\\sum',
    '\\_',
    '\\{',
    '\\}',
    '\\,',
  ],
  ...[' ', ' + ', '=', ' * ', '*', '**', '~', '~~', '<', '>', '&', '|', '[1]', '(y)', "'", '#', '!', '\\\\ '],
);
const formula = fc
  .tuple(fc.constantFrom(...WAYS), fc.array(piece, { maxLength: 12 }))
  .map(([way, pieces]) => {
    const [open, close] = way;
    return `${open}\\alpha${pieces.join('')}z${close}`;
  });
/** Where it stands, and what is seen of that. */
const place = fc.constantFrom(
  ['so F, yes', 'so F, yes'],
  ['F', 'F'],
  ['- one F\n- two', '•oneF•two'],
  ['> quoted F', 'quotedF'],
  ['1. F', '1.F'],
  ['其中F是', '其中F是'],
  ['> - F', '•F'],
  ['2F and Fth', '2F and Fth'],
  ['- a\n  1. b F', '•a1.bF'],
  ['1. a\n\n   F\n2. b', '1.aF2.b'],
  ['# About F', 'AboutF'],
);

describe.each(Object.entries(SEEN))('on %s', (_name, seen) => {
  test('every sign of a formula is there, in no style but that of code', () => {
    fc.assert(
      fc.property(formula, place, (tex, [around = '', shown = '']) => {
        const letters = visible(seen(around.replaceAll('F', () => tex)));
        expect(textOf(letters)).toBe(tight(shown.replaceAll('F', () => tex)));
        if (around.startsWith('#')) return;
        expect(letters.filter(({ styles }) => EMPHASIS.some((style) => styles.has(style)))).toEqual([]);
      }),
      { numRuns: 150 },
    );
  });

  test('a formula of several lines is whole, whatever its lines begin with, and wherever it stands', () => {
    const start = fc.constantFrom('', '- ', '+ ', '> ', '# ', '1. ', '---', '===', '    ', '| ', '&= ', '* ');
    const line = fc.tuple(start, piece, piece).map((all) => `${all.join('')}x`);
    const shown = fc.tuple(fc.constantFrom(...WAYS.slice(1)), fc.array(line, { minLength: 1, maxLength: 6 }));
    const within = fc.constantFrom(
      ['', ''],
      ['> ', '> '],
      ['- ', '  '],
      ['1. a\n\n   ', '   '],
      ['> - ', '>   '],
    );
    fc.assert(
      fc.property(shown, within, ([[open, close], lines], [first = '', rest = '']) => {
        const tex = [open, '\\alpha', ...lines, close].join('\n');
        const source = first + tex.replaceAll('\n', `\n${rest}`);
        const before = tight(first).replace('-', '•').replace('>', '');
        // No line of a formula begins a block of code.
        fc.pre(!tex.includes('~~~'));
        expect(textOf(seen(source))).toBe(before + tight(tex));
      }),
      { numRuns: 100 },
    );
  });

  test('a formula of several lines is not taken for a list, a quote or a title', () => {
    const source =
      '我们有\n\\[\n\\begin{aligned}\na_1 &= b * c \\\\\n- d_2\n+ e\n> 0\n===\n\\end{aligned}\n\\]\nand *so* on';
    expect(textOf(seen(source))).toBe(tight(source).replace('*so*', 'so'));
    const blank = '- $$\n\n  \\alpha_1\n\n  + \\beta_2\n\n  $$\n- two';
    expect(textOf(seen(blank))).toBe('•$$\\alpha_1+\\beta_2$$•two');
    const quoted = `> ${'$$\nx_1\n- y_1\n$$'.replaceAll('\n', '\n> ')}\n> said`;
    expect(textOf(seen(quoted))).toBe('$$x_1-y_1$$said');
  });

  test('a table may have formulas with its own sign in them', () => {
    const source = '| f | g |\n|---|---|\n| $\\|x_1|$ | $P(A|B)$ |\n| a | b |';
    expect(textOf(seen(source))).toContain('$\\|x_1|$');
    expect(textOf(seen(source))).toContain('$P(A|B)$');
  });

  test.each([
    'so $\\hat{x}_i = \\sum_{k=1}^{n} a_k x_{k}$ and \\(n = 3\\), so',
    'we have \\[ z_{1} = \\frac{a}{b * c * d} \\]',
    'it is\n\n$$\na_1 * b_2 * c\n$$',
  ])('while %j is written, all that was written of a formula is seen', (source) => {
    for (let length = 1; length <= source.length; length += 1) {
      const written = source.slice(0, length);
      expect(textOf(seen(written))).toBe(tight(written));
    }
  });

  test.each([
    ['it costs $5 and $10, **really**', 'it costs $5 and $10, really', 'really'],
    [
      '**$5** or $10-$20, a $1,000 *fee*: US$7, 5$ or 6$',
      '$5 or $10-$20, a $1,000 fee: US$7, 5$ or 6$',
      '$5fee',
    ],
    ['$HOME/*bin* and $USER', '$HOME/bin and $USER', 'bin'],
    ['$\u007ba}/$\u007bb}/*c*, $(d)/$(e)', '$\u007ba}/$\u007bb}/c, $(d)/$(e)', 'c'],
    ['see \\[1\\] and \\*this\\*, _that_', 'see [1] and *this*, that', 'that'],
    ['a $5 **(or €4)**, i.e. 3$.', 'a $5 (or €4), i.e. 3$.', '(or€4)'],
  ])('%j is none', (source, text, styled) => {
    const letters = visible(seen(source));
    expect(textOf(letters)).toBe(tight(text));
    expect(letters.filter(({ styles }) => styles.has('code'))).toEqual([]);
    const emphasised = letters.filter(({ styles }) => EMPHASIS.some((style) => styles.has(style)));
    expect(textOf(emphasised)).toBe(styled);
  });
});

test('code, addresses and what is fenced keep their dollars', () => {
  const marks = (source: string) => parse(source).marks.map(({ kind }) => kind);
  expect(marks('use `\\(` and `\\)` for _x_')).toEqual(['code', 'code', 'italic']);
  expect(marks('~~~\n$a_1$\n~~~\n\n$b_1$ *c*')).toEqual(['pre', 'code', 'italic']);
  expect(marks('https://x.example/?a=$b_c$&d *e*')).toEqual(['italic']);
  expect(parse('[*a* $x_1$](https://x.example/$b$)').marks).toMatchObject([
    { kind: 'link', url: 'https://x.example/$b$' },
    { kind: 'italic' },
    { kind: 'code' },
  ]);
  expect(parse('    $a_1$ \\(b\\)').text).toBe('$a_1$ \\(b\\)');
});
