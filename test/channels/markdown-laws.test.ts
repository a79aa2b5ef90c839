/** What must hold of every Markdown on every platform, from the source to what is seen of the messages. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { cut, type MessageLimits } from '../../src/channels/markdown/cut.js';
import { discordLength, discordText } from '../../src/channels/markdown/discord.js';
import { parse } from '../../src/channels/markdown/parse.js';
import { whatsappText } from '../../src/channels/markdown/whatsapp.js';
import { terminalText } from '../../src/channels/terminal/prompt.js';
import type { Part } from '../../src/core/channel.js';
import { readDiscord } from './reading/discord.js';
import { markdown } from './reading/generated.js';
import { type Letter, letters, words } from './reading/seen.js';
import { readWhatsApp } from './reading/whatsapp.js';

interface Platform {
  limits: MessageLimits;
  rendered(part: Part): string;
  seen(part: Part): Letter[];
}

const PLATFORMS: Record<string, Platform> = {
  telegram: {
    limits: { limit: 4096, maxMarks: 100 },
    rendered: ({ text }) => text,
    seen: ({ text }) => letters(text),
  },
  discord: {
    limits: { limit: 2000, measure: discordLength },
    rendered: discordText,
    seen: (part) => readDiscord(discordText(part), 'desktop'),
  },
  whatsapp: {
    limits: { limit: 4096, measure: (part) => whatsappText(part).length },
    rendered: whatsappText,
    seen: (part) => readWhatsApp(whatsappText(part)),
  },
  terminal: { limits: { limit: 1e9 }, rendered: terminalText, seen: (part) => letters(part.text) },
};
const names = Object.keys(PLATFORMS);

function platform(name: string): Platform {
  const found = PLATFORMS[name];
  if (found === undefined) throw new Error(`no platform ${name}`);
  return found;
}

/** A piece of a document: its Markdown, line by line, and the words in it that are to be seen. */
interface Piece {
  lines: string[];
  said: string;
}

const word = fc.stringMatching(/^[a-z小]{1,8}$/u);
const phrase = fc
  .tuple(word, fc.constantFrom('', '', '', '**', '*', '~~', '`', '***', '[', '_'))
  .map(([said, sign]) => ({
    said,
    shown: sign === '[' ? `[${said}](https://e.example/x)` : `${sign}${said}${sign}`,
  }));
const sentence = fc.array(phrase, { minLength: 1, maxLength: 8 }).map((all) => ({
  said: all.map(({ said }) => said).join(''),
  shown: all.map(({ shown }) => shown).join(' '),
}));
const paragraph = fc
  .array(sentence, { minLength: 1, maxLength: 4 })
  .map(
    (all): Piece => ({ lines: all.map(({ shown }) => shown), said: all.map(({ said }) => said).join('') }),
  );
const heading = sentence.map(({ said, shown }): Piece => ({ lines: [`## ${shown}`], said }));
const fence = fc.array(sentence, { minLength: 1, maxLength: 20 }).map(
  (all): Piece => ({
    lines: ['~~~js', ...all.map(({ said }) => `  ${said}`), '~~~'],
    said: all.map(({ said }) => said).join(''),
  }),
);
const table = fc
  .array(fc.tuple(sentence, sentence), { minLength: 2, maxLength: 5 })
  .map(([first, ...rows]): Piece => {
    const all = [first, ...rows].map((row) => row ?? []);
    const [header = '', ...others] = all.map((row) => `| ${row.map(({ shown }) => shown).join(' | ')} |`);
    return {
      lines: [header, '|--|--|', ...others],
      said: all
        .flat()
        .map(({ said }) => said)
        .join(''),
    };
  });

/** What holds others, each line of them behind a sign. */
function within(inner: fc.Arbitrary<Piece>): fc.Arbitrary<Piece> {
  const signs = fc.constantFrom(['> ', '> '], ['- ', '  '], ['1. ', '   ']);
  return fc.tuple(signs, inner).map(([[first, rest], { lines, said }]) => ({
    lines: lines.map((line, at) =>
      line === '' ? (rest ?? '').trimEnd() : `${at === 0 ? first : rest}${line}`,
    ),
    said,
  }));
}

const { block } = fc.letrec<{ block: Piece; blocks: Piece }>((tie) => ({
  block: fc.oneof({ maxDepth: 3 }, paragraph, heading, fence, table, within(tie('blocks'))),
  blocks: fc.array(tie('block'), { minLength: 1, maxLength: 3 }).map((all) => ({
    lines: all.flatMap(({ lines }, at) => (at === 0 ? lines : ['', ...lines])),
    said: all.map(({ said }) => said).join(''),
  })),
}));
const documents = fc.array(block, { minLength: 1, maxLength: 5 }).map((all) => ({
  source: all.map(({ lines }) => lines.join('\n')).join('\n\n'),
  said: all.map(({ said }) => said).join(''),
}));

/** Of what is seen, the words alone: no bullets, no lines of tables, no addresses behind labels. */
function said(seen: Letter[]): string {
  return words(seen)
    .replaceAll('(https://e.example/x)', '')
    .replace(/[^a-z小]/gu, '');
}

describe.each(names)('on %s', (name) => {
  const { limits, rendered, seen } = platform(name);

  test('every word of the source is seen, in order, in messages within their limits', () => {
    fc.assert(
      fc.property(documents, fc.integer({ min: 100, max: 500 }), (document, limit) => {
        const measure = limits.measure ?? ((part: Part) => part.text.length);
        const parts = cut(parse(document.source), { ...limits, limit });
        for (const part of parts) expect(measure(part)).toBeLessThanOrEqual(limit);
        expect(parts.map((part) => said(seen(part))).join('')).toBe(document.said);
      }),
      { numRuns: 100 },
    );
  });

  test('no surrogate is halved, and what is sent is never blank', () => {
    fc.assert(
      fc.property(markdown, fc.integer({ min: 100, max: 500 }), (source, limit) => {
        const parts = cut(parse(source), { ...limits, limit });
        for (const part of parts) {
          expect(rendered(part)).not.toMatch(/\p{Surrogate}/u);
          expect(rendered(part).trim()).not.toBe('');
        }
        expect(parts.length > 0).toBe(source.trim() !== '');
      }),
      { numRuns: 100 },
    );
  });
});

test('a table that is told row by row says all that it says aligned', () => {
  const source = `| a | long header |\n|---|---|\n| **x** | [y](https://e.example/x) |\n| z | \`w\` |`;
  expect(parse(source, { tableWidth: 40 }).text).toBe(
    'a | long header\n--|------------------------\nx | y (https://e.example/x)\nz | w',
  );
  expect(parse(source, { tableWidth: 10 })).toEqual({
    text: 'a: x\nlong header: y\n\na: z\nlong header: w',
    marks: [
      { kind: 'bold', offset: 0, length: 1 },
      { kind: 'bold', offset: 3, length: 1 },
      { kind: 'bold', offset: 5, length: 11 },
      { kind: 'link', offset: 18, length: 1, url: 'https://e.example/x' },
      { kind: 'bold', offset: 21, length: 1 },
      { kind: 'bold', offset: 26, length: 11 },
      { kind: 'code', offset: 39, length: 1 },
    ],
  });
});

const ROWS =
  '| city | inhabitants | country |\n|---|--:|---|\n| 東京 | 13,960,000 | 日本、本州の東 |\n| Rome | 2,750,000 | Italy |';

test('a table wider than a line of the platform is told in records, a letter of double width counting twice', () => {
  const width = 'city | inhabitants | country'.length + 7;
  expect(parse(ROWS, { tableWidth: width - 1 }).text).toBe(
    'city: 東京\ninhabitants: 13,960,000\ncountry: 日本、本州の東\n\ncity: Rome\ninhabitants: 2,750,000\ncountry: Italy',
  );
  expect(parse(ROWS, { tableWidth: width }).marks).toMatchObject([{ kind: 'pre' }]);
});

test('a large table has no more marks than a message may', () => {
  const rows = Array.from(
    { length: 50 },
    (_, n) => `| ${n} | a cell of ${n} | another that is long enough |`,
  );
  const { text, marks } = parse(`| n | one | two |\n|--|--|--|\n${rows.join('\n')}`, { tableWidth: 30 });
  expect(text).toContain('n: 49\none: a cell of 49\n');
  expect(marks).toEqual([]);
});

test('while a table is written, it changes its form once at most', () => {
  const forms: string[] = [];
  for (let length = ROWS.indexOf('--:|---|') + 8; length <= ROWS.length; length += 1) {
    const { marks } = parse(ROWS.slice(0, length), { tableWidth: 30 });
    const form = marks[0]?.kind ?? '';
    if (forms.at(-1) !== form) forms.push(form);
  }
  expect(forms).toEqual(['pre', 'bold']);
});

test('an address too long to be hidden in a message is shown in the text', () => {
  const long = `https://e.example/${'x'.repeat(1000)}`;
  expect(parse(`[a](${long})`)).toEqual({ text: `a (${long})`, marks: [] });
  for (const name of names) {
    const { limits } = platform(name);
    for (const part of cut(
      parse(`[a](https://e.example/${'('.repeat(200)}z${')'.repeat(200)}) `.repeat(20)),
      limits,
    )) {
      expect((limits.measure ?? (() => 0))(part)).toBeLessThanOrEqual(limits.limit);
    }
  }
});

describe('bad input stays quick', () => {
  const big = 100_000;
  const cases: Record<string, string> = {
    stars: '*'.repeat(big),
    brackets: '['.repeat(big),
    quotes: '>'.repeat(big),
    backticks: '`'.repeat(big),
    tildes: '~'.repeat(big),
    colons: ':a'.repeat(big / 2),
    at: '@here'.repeat(big / 5),
    'escaped signs': '\\*'.repeat(big / 2),
    'tiny emphases': '*a* '.repeat(10_000),
    'tiny emphases within words': '*a*b '.repeat(10_000),
    'styles in styles': '**a _b_** ~~c~~ `d` '.repeat(big / 20),
    links: '[a](https://e.example/x_y) '.repeat(big / 27),
    'long addresses': `[a](https://e.example/${'x'.repeat(700)}) `.repeat(big / 700),
    'one long address': `https://e.example/${'a_*'.repeat(big / 3)}`,
    'lines of quotes': '> a\n'.repeat(big / 4),
    'lines of items': '1. a\n'.repeat(big / 5),
    'one fence': `~~~js\n${'x = `y`; ```\n'.repeat(big / 13)}~~~`,
    dollars: '$'.repeat(big),
    'dollars and letters': '$a '.repeat(big / 3),
    'openings of formulas': '\\('.repeat(big / 2),
    'openings of larger ones': '\\[ a\n'.repeat(big / 5),
    environments: '\\begin{a}'.repeat(big / 9),
    'formulas alone': '$x_1$ '.repeat(big / 6),
    'formulas with bars': '$a | b$ '.repeat(big / 8),
    'openings in paragraphs': `${'\\[a '.repeat(900)}\n\n`.repeat(big / 3_600),
    'backticks of many lengths': Array.from({ length: 400 }, (_, n) => '`'.repeat(n)).join(' '),
    elements: '<sub>'.repeat(big / 5),
    'elements with an end': '<sub>a</sub>'.repeat(big / 12),
    breaks: '<br>'.repeat(big / 4),
    'breaks with blanks': `<br>${' '.repeat(big)}`,
    'wide punctuation': '**：'.repeat(big / 3),
    tables: '| a | b |\n|---|---|\n| 1 | 2 |\n\n'.repeat(big / 31),
  };
  // The bound is generous, for slow machines: what is quadratic takes minutes.
  test.each(Object.keys(cases))('%s', (which) => {
    const started = performance.now();
    const styled = parse(cases[which] ?? '');
    for (const name of names) {
      const { limits, rendered } = platform(name);
      expect(cut(styled, limits).map(rendered).join('').trim(), name).not.toBe('');
    }
    expect(performance.now() - started).toBeLessThan(20_000);
  });
});
