import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { cut } from '../../src/channels/markdown/cut.js';
import { parse } from '../../src/channels/markdown/parse.js';
import { TABLE_WIDTH, whatsappText } from '../../src/channels/markdown/whatsapp.js';
import type { Part } from '../../src/core/channel.js';
import { expected, type Rules } from './reading/expected.js';
import { markdown, parts } from './reading/generated.js';
import { type Letter, stylesOf, visible, words } from './reading/seen.js';
import { readWhatsApp } from './reading/whatsapp.js';

const rendered = (source: string) => whatsappText(parse(source, { tableWidth: TABLE_WIDTH }));

describe('as WhatsApp writes it', () => {
  const cases: [string, string][] = [
    ['**bold** *italic* ~~gone~~ `code`', '*bold* _italic_ ~gone~ `code`'],
    ['***all*** of **it _too_**', '*_all_* of *it _too_*'],
    ['in**side**word and `npm`s', 'insideword and npms'],
    ['(**bold**), "*italic*"!', '(*bold*), "_italic_"!'],
    ['2 * 3 * 4, snake_case_name, ~5 and ~6', '2 * 3 * 4, snake_case_name, ~5 and ~6'],
    [
      '\\*not bold\\* nor \\_this\\_',
      '\u2060*\u2060not bold\u2060*\u2060 nor \u2060_\u2060this\u2060_\u2060',
    ],
    ['one \\* alone, \\`two\\` ticks', 'one * alone, \u2060`\u2060two\u2060`\u2060 ticks'],
    ['# Title\n\ntext', '*Title*\n\ntext'],
    ['# The `npm ci` command', '*The* `npm ci` *command*'],
    ['# 5 * 3', '5 * 3'],
    ['- a\n  - b\n- c', '- a\n  ◦ b\n- c'],
    ['1. a\n   1. b\n2. c', '1. a\n   \u20601. b\n2. c'],
    ['\\- a\n\\> b\n7\\. c', '\u2060- a\n\u2060> b\n7. c'],
    ['> a **b**\n>\n> c\n\nd', '> a *b*\n\n> c\n\nd'],
    ['```js\nlet a;\n```', '```let a;```'],
    ['~~~\na ``` b\n~~~', '```a `\u2060`` b```'],
    ['`` a`b ``', '```a`b```'],
    ['[the **label**](https://e.example/_x_)', 'the *label* (https://e.example/_x_)'],
    ['[e.example](https://e.example/)', 'e.example'],
    ['[mail](mailto:a@e.example)', 'mail (a@e.example)'],
    ['**see https://e.example/_x_ now**', '*see* https://e.example/_x_ *now*'],
    ['https://e.example/_x_ and _y_', 'https://e.example/_x_ and _y_'],
  ];
  test.each(cases)('%j', (source, written) => {
    expect(rendered(source)).toBe(written);
  });

  test('a narrow table stands aligned, a wide one is told row by row', () => {
    expect(rendered('| a | b |\n|---|--:|\n| one | 2 |')).toBe('```a   | b\n----|--\none | 2```');
    const wide =
      '| name | what it is for |\n|--|--|\n| `npm ci` | installs what the lock says |\n| [x](https://e.example) | |';
    expect(rendered(wide)).toBe(
      '*name*: `npm ci`\n*what it is for*: installs what the lock says\n\n*name*: x (https://e.example)',
    );
  });
});

describe('what comes of it', () => {
  const rules: Rules = {
    told: (label, url) => (bare(label) === bare(url) ? '' : `(${encoded(url).replace(/^mailto:/, '')})`),
    style: (mark) => (mark.kind === 'link' || mark.kind === 'quote' ? null : mark.kind),
  };

  function encoded(url: string): string {
    return url.replace(/[()[\]*~]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);
  }

  function bare(address: string): string {
    return address.replace(/^(https?:\/\/|mailto:)/, '').replace(/\/$/, '');
  }

  function hold(part: Part): void {
    const wanted = visible(expected(part, rules).flat());
    const seen = visible(readWhatsApp(whatsappText(part)));
    const about = `${JSON.stringify(part)}\n${JSON.stringify(whatsappText(part))}`;
    expect(words(seen), about).toBe(words(wanted));
    wanted.forEach((letter, index) => {
      const got = seen[index]?.styles ?? new Set();
      // Emphasis and code within a line may be left out, but nothing comes that was not there.
      const kept = [...letter.styles].filter(
        (style) => got.has(style) || style === 'quote' || style === 'pre',
      );
      const wantedStyles = kept.map((style) => (style === 'pre' ? 'code' : style)).sort();
      expect(stylesOf(seen[index] as Letter), `${letter.letter} at ${index} of ${about}`).toBe(
        wantedStyles.join(' '),
      );
    });
  }

  test('text as it is, and no mark that is not of the part', () => {
    fc.assert(fc.property(parts, hold), { numRuns: 2000 });
  });

  test('also of any Markdown, however it is cut', () => {
    const measure = (part: Part) => whatsappText(part).length;
    fc.assert(
      fc.property(markdown, fc.integer({ min: 120, max: 400 }), (source, limit) => {
        for (const part of cut(parse(source, { tableWidth: TABLE_WIDTH }), { limit, measure })) {
          expect(measure(part)).toBeLessThanOrEqual(limit);
          hold(part);
        }
      }),
      { numRuns: 500 },
    );
  });

  test('every mark that stands between spaces is there', () => {
    const kinds = ['bold', 'italic', 'strike', 'code'] as const;
    const pieces = fc.array(
      fc.tuple(
        fc.stringMatching(/^[a-z小]{1,5}( [a-z]{1,4})?$/u),
        fc.subarray([...kinds]),
        fc.constantFrom(' ', '\n'),
      ),
      { minLength: 1, maxLength: 12 },
    );
    fc.assert(
      fc.property(pieces, (all) => {
        const part: Part = { text: '', marks: [] };
        for (const [said, styles, space] of all) {
          const here = styles.includes('code') ? (['code'] as const) : styles;
          for (const kind of here) part.marks.push({ kind, offset: part.text.length, length: said.length });
          part.text += said + space;
        }
        const shown = (seen: Letter[]) =>
          visible(seen).map((letter) => `${letter.letter} ${stylesOf(letter)}`);
        expect(shown(readWhatsApp(whatsappText(part)))).toEqual(shown(expected(part, rules).flat()));
      }),
      { numRuns: 500 },
    );
  });
});
