import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { htmlText } from '../../src/channels/markdown/html.js';
import { parse } from '../../src/channels/markdown/parse.js';
import type { Part } from '../../src/core/channel.js';
import { expected, type Rules } from './reading/expected.js';
import { markdown, parts } from './reading/generated.js';
import { readHtml } from './reading/html.js';
import { stylesOf, visible, words } from './reading/seen.js';

const anchor = (url: string, label: string) =>
  `<a href="${url}" target="_blank" rel="noopener noreferrer nofollow">${label}</a>`;

describe('as a page shows it', () => {
  const cases: [string, string][] = [
    [
      '**bold _both_** ~~gone~~ `a<b`',
      '<p><strong>bold <em>both</em></strong> <s>gone</s> <code>a&lt;b</code></p>',
    ],
    ['one\ntwo\n\nthree', '<p>one<br>\ntwo</p>\n<p>three</p>'],
    ['- a\n  - b', '<p>• a<br>\n&nbsp; ◦ b</p>'],
    ['> a\n>\n> b\n\nc', '<blockquote>\n<p>a</p>\n<p>b</p>\n</blockquote>\n<p>c</p>'],
    ['```"><b>\n\nx < y\n```', '<pre>\n<code class="language-&quot;&gt;&lt;b&gt;">\nx &lt; y</code></pre>'],
    [
      '[**a**](https://e.example/?a=1&b="2")',
      `<p>${anchor('https://e.example/?a=1&amp;b=%222%22', '<strong>a</strong>')}</p>`,
    ],
    ['see https://e.example/_x_.', `<p>see ${anchor('https://e.example/_x_', 'https://e.example/_x_')}.</p>`],
    ['<script>alert(1)</script>', '<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>'],
    ['[a](javascript:alert(1))', '<p>a (javascript:alert(1))</p>'],
  ];
  test.each(cases)('%j', (source, written) => {
    expect(htmlText(parse(source))).toBe(written);
  });
});

test('a link to what is not harmless is text, whoever made the mark', () => {
  for (const url of [
    'javascript:alert(1)',
    ' javascript:alert(1)',
    'data:text/html,x',
    'JAVASCRIPT:x',
    '//e.example',
    'file:///etc',
  ]) {
    const part: Part = { text: 'a', marks: [{ kind: 'link', offset: 0, length: 1, url }] };
    expect(htmlText(part)).toBe('<p>a</p>');
  }
});

describe('whatever it is', () => {
  const rules: Rules = {
    told: () => null,
    style(mark) {
      if (mark.kind === 'pre') return `pre ${mark.language}`;
      return mark.kind === 'link' ? `link ${mark.url}` : mark.kind === 'quote' ? null : mark.kind;
    },
  };

  /** Addresses that stand in the text are links, too, without a mark. */
  function hold(part: Part): void {
    const wanted = visible(expected(part, rules).flat());
    const seen = visible(readHtml(htmlText(part)));
    const about = `${JSON.stringify(part)}\n${htmlText(part)}`;
    expect(words(seen), about).toBe(words(wanted));
    wanted.forEach((letter, index) => {
      const got = seen[index] ?? letter;
      const isLink = [...letter.styles].some((style) => style.startsWith('link '));
      const styles = isLink
        ? got.styles
        : new Set([...got.styles].filter((style) => !style.startsWith('link ')));
      expect(stylesOf({ ...got, styles }), `${letter.letter} at ${index} of ${about}`).toBe(stylesOf(letter));
    });
  }

  test('it is shown with its marks, and nothing of it is markup', () => {
    fc.assert(fc.property(parts, hold), { numRuns: 2000 });
  });

  test('also any Markdown', () => {
    fc.assert(
      fc.property(markdown, (source) => hold(parse(source))),
      { numRuns: 500 },
    );
  });
});
