import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { cut } from '../../src/channels/markdown/cut.js';
import { discordLength, discordText } from '../../src/channels/markdown/discord.js';
import { parse } from '../../src/channels/markdown/parse.js';
import type { Part } from '../../src/core/channel.js';
import { type Client, readDiscord } from './reading/discord.js';
import { expected, type Rules } from './reading/expected.js';
import { markdown, parts } from './reading/generated.js';
import { type Letter, stylesOf, visible, words } from './reading/seen.js';

const LIMIT = 2000;
const CLIENTS: Client[] = ['desktop', 'telephone'];
const rendered = (source: string) => discordText(parse(source));

describe('as Discord writes it', () => {
  const cases: [string, string][] = [
    ['plain words', 'plain words'],
    ['**bold** *italic* ~~gone~~ `code`', '**bold** *italic* ~~gone~~ `code`'],
    ['***all***', '***all***'],
    ['in**side**word', 'in**side**word'],
    ['2 * 3 and snake_case, ~5 | 6', '2 \\* 3 and snake\\_case, \\~5 \\| 6'],
    ['# Title\n\ntext', '**Title**\n\ntext'],
    ['## 1. Title', '**1\\. Title**'],
    ['# The `*` sign', '**The** `*` **sign**'],
    ['\\# a\n\\> b\n\\- c\n\\-# d\n\\+ e\n7\\. f', '\\# a\n\\> b\n\\- c\n\\-# d\n\\+ e\n7. f'],
    ['- a\n  - b\n    - c\n- d', '- a\n  - b\n    - c\n- d'],
    ['1. a\n2. b\n\n   more\n\n3. c', '1. a\n2. b\n\n   more\n\n3. c'],
    ['- a\n\n  - b', '- a\n\n  ◦ b'],
    ['* a\n\n1. b', '- a\n\n1\\. b'],
    ['> a **b**\n>\n> c\n\nd', '> a **b**\n>  \n> c\n\nd'],
    ['> - a\n>   - b', '> • a\n>   ◦ b'],
    ['> a\n> ```\n> b\n> ```', '> a\n```\nb\n```'],
    ['> ```\n> a\n> ```\n>\n> b', '```\na\n```\n\n> b'],
    ['```c++\na\n```', '```c++\na\n```'],
    ['```what is this\na\n```', '```what\na\n```'],
    ['```c#\na\n```', '```\na\n```'],
    ['`` a`b ``', '``a`b``'],
    ['`` `a` ``', '`` `a` ``'],
    ['[a](https://e.example/x_y)', '[a](<https://e.example/x_y>)'],
    ['[a [b]](https://e.example/(c))', '[a \\[b\\]](<https://e.example/%28c%29>)'],
    ['[a \\[ b](https://e.example)', 'a \\[ b (<https://e.example>)'],
    ['[http://a.example](https://e.example)', 'http://a.example (<https://e.example>)'],
    ['[mail](mailto:a@e.example)', 'mail (a@e.example)'],
    ['[a](tg://user?id=1)', 'a (tg\\://user?id=1)'],
    ['see https://e.example/_x_*y*, ok', 'see https://e.example/_x_*y*, ok'],
    ['(https://e.example)', '(https://e.example)'],
    ['https://e.example**x**', '<https://e.example>**x**'],
    ['ftp://e.example/a_b discord://x', 'ftp\\://e.example/a\\_b discord\\://x'],
    ['@everyone <@1> <@&2> <#3> :smile:', '@\u200beveryone \\<\\@1> \\<\\@&2> \\<#3> \\:smile:'],
    ['[1] ||no|| __init\\_\\_', '\\[1] \\|\\|no\\|\\| \\_\\_init\\_\\_'],
  ];
  test.each(cases)('%j', (source, written) => {
    expect(rendered(source)).toBe(written);
  });

  test('signs of emphasis that would run together are held apart', () => {
    const part: Part = {
      text: 'ab',
      marks: [
        { kind: 'bold', offset: 0, length: 1 },
        { kind: 'italic', offset: 1, length: 1 },
      ],
    };
    expect(discordText(part)).toBe('**a**\u200b*b*');
  });

  test('three backticks do not end a block of code', () => {
    expect(rendered('~~~\na ``` b\n~~~')).toBe('```\na ``\u200b` b\n```');
  });
});

describe('what comes of it', () => {
  const toldIn =
    (part: Part): Rules['told'] =>
    (label, url, code) => {
      const isWeb = /^https?:/.test(url);
      const isPlain = !part.text.includes('](') && !/[[\]]/.test(code) && !label.includes('://');
      if (isWeb && isPlain && /^(?:[^[\]]|\[[^[\]]*\])*$/.test(label)) return null;
      if (withoutScheme(label) === withoutScheme(url)) return '';
      return `(${isWeb ? encoded(url) : url.replace(/^mailto:/, '')})`;
    };
  const rulesFor = (part: Part): Rules => ({
    told: toldIn(part),
    style(mark) {
      if (mark.kind === 'pre') return `pre ${/^[\w+.-]+$/.test(mark.language) ? mark.language : ''}`;
      if (mark.kind === 'quote') return null;
      return mark.kind === 'link' ? `link ${encoded(mark.url)}` : mark.kind;
    },
  });

  function encoded(url: string): string {
    return url.replace(/[()[\]*~]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);
  }

  function withoutScheme(address: string): string {
    return address.replace(/^(https?:\/\/|mailto:)/, '').replace(/\/$/, '');
  }

  /** Emphasis may be missing where its signs could not stand: on stars and tildes, in code and addresses with them. */
  function mayMiss(line: readonly Letter[], at: number): boolean {
    const letter = line[at];
    if (letter === undefined || /[*~\\]/.test(letter.letter) || letter.styles.has('code')) return true;
    const all = line.map((each) => each.letter);
    const before =
      all
        .slice(0, at + 1)
        .join('')
        .split(/\s/)
        .at(-1) ?? '';
    const after = all.slice(at).join('').split(/\s/)[0] ?? '';
    return (before + after).includes('://');
  }

  function hold(part: Part, client: Client): void {
    const lines = expected(part, rulesFor(part));
    const seen = visible(readDiscord(discordText(part), client));
    const wanted = lines.flatMap((line) => visible(line));
    const hard = lines.flatMap((line) =>
      line.flatMap((each, at) => (visible([each]).length > 0 ? [mayMiss(line, at)] : [])),
    );
    const about = `${JSON.stringify(part)}\n${JSON.stringify(discordText(part))}`;
    expect(words(seen), about).toBe(words(wanted));
    wanted.forEach((letter, index) => {
      const got = seen[index] ?? letter;
      const styles = hard[index]
        ? [...letter.styles].filter((s) => got.styles.has(s) || !/bold|italic|strike/.test(s))
        : [...letter.styles];
      expect(stylesOf(got), `${letter.letter} at ${index} of ${about}`).toBe(styles.sort().join(' '));
    });
  }

  test.each(CLIENTS)('its %s clients show text and marks of any part', (client) => {
    fc.assert(
      fc.property(parts, (part) => hold(part, client)),
      { numRuns: 2000 },
    );
  });

  test.each(CLIENTS)('its %s clients show text and marks of any Markdown, however it is cut', (client) => {
    fc.assert(
      fc.property(markdown, fc.integer({ min: 120, max: 400 }), (source, limit) => {
        for (const part of cut(parse(source), { limit, measure: discordLength })) {
          expect(discordLength(part)).toBeLessThanOrEqual(limit);
          hold(part, client);
        }
      }),
      { numRuns: 500 },
    );
  });
});

test('nothing calls anybody: no mention stands in what is sent, but in code', () => {
  fc.assert(
    fc.property(parts, (part) => {
      const marks = part.marks.filter((mark) => mark.kind !== 'pre' && mark.kind !== 'code');
      expect(discordText({ text: part.text, marks })).not.toMatch(/<@[!&]?\d+>|@everyone|@here/);
    }),
    { numRuns: 1000 },
  );
});

describe('length', () => {
  test('is counted in code points, markup included', () => {
    expect(discordLength({ text: '😀*', marks: [{ kind: 'bold', offset: 0, length: 2 }] })).toBe(7);
  });
  test('two thousand emoji are one message', () => {
    const compose = (source: string) => cut(parse(source), { limit: LIMIT, measure: discordLength });
    expect(compose('😀'.repeat(LIMIT))).toHaveLength(1);
    expect(compose('😀'.repeat(LIMIT + 1))).toHaveLength(2);
    expect(compose('*'.repeat(3) + 'a'.repeat(LIMIT - 6))).toHaveLength(1);
  });
});
