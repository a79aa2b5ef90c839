import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isPlain, plain } from '../../src/channels/markdown/compose.js';
import { parse } from '../../src/channels/markdown/parse.js';
import { render } from '../../src/channels/markdown/render.js';
import type { Mark } from '../../src/core/channel.js';

/** Marks as a reader sees them: kind, what they are on, and what they carry. */
function seen(source: string): { text: string; marks: string[] } {
  const { text, marks } = parse(source);
  return { text, marks: marks.map((mark) => shown(text, mark)) };
}

function shown(text: string, mark: Mark): string {
  const on = text.slice(mark.offset, mark.offset + mark.length);
  if (mark.kind === 'link') return `link ${on} → ${mark.url}`;
  return mark.kind === 'pre' ? `pre(${mark.language}) ${on}` : `${mark.kind} ${on}`;
}

describe('inline', () => {
  const cases: [string, string, string[]][] = [
    ['plain words', 'plain words', []],
    [
      '**bold** and *italic* and ~~gone~~',
      'bold and italic and gone',
      ['bold bold', 'italic italic', 'strike gone'],
    ],
    ['**all _of_ it**', 'all of it', ['bold all of it', 'italic of']],
    ['****twice****', 'twice', ['bold twice']],
    ['`a * b` stays', 'a * b stays', ['code a * b']],
    ['2 * 3 * 4 and snake_case_name', '2 * 3 * 4 and snake_case_name', []],
    [
      '5*4*3 = 60, 2**8 and 2**3**4, **1*2*3** is 6',
      '5*4*3 = 60, 2**8 and 2**3**4, 1*2*3 is 6',
      ['bold 1*2*3'],
    ],
    ['\\*not bold\\* &amp; &lt;b&gt; &copy;', '*not bold* & <b> ©', []],
    ['one\ntwo  \nthree\\\nfour', 'one\ntwo\nthree\nfour', []],
    ['one<br>two<br/>\nthree<BR />four<br>', 'one\ntwo\nthree\nfour', []],
    ['H<sub>2</sub>O, x<sub>i+1</sub>, m<sup>2</sup>, 1<sup>st</sup>', 'H₂O, xᵢ₊₁, m², 1ˢᵗ', []],
    ['a<sub>foo</sub>, b<sup>q</sup>, c<sup>[1]</sup>, d<sup>é è</sup>', 'a_foo, b^q, c^[1], d^(é è)', []],
    ['x<sup>**n**</sup> **y<sub>1</sub>**', 'xⁿ y₁', ['bold y₁']],
    ['<kbd>Ctrl</kbd>+<kbd>&lt;</kbd>', 'Ctrl+<', ['code Ctrl', 'code <']],
    ['<sub>open, <sup></sup>, <kbd>a</sub>, <u>b</u>', '<sub>open, <sup></sup>, <kbd>a</sub>, <u>b</u>', []],
    ['`<br>` and `<sub>2</sub>`', '<br> and <sub>2</sub>', ['code <br>', 'code <sub>2</sub>']],
    ['<b>html</b> <!-- too -->', '<b>html</b> <!-- too -->', []],
    ['<div>\n*x*\n</div>', '<div>\nx\n</div>', ['italic x']],
    ['小月 **很好** 😀', '小月 很好 😀', ['bold 很好']],
    ['unclosed **bold and `code', 'unclosed **bold and `code', []],
  ];
  test.each(cases)('%j', (source, text, marks) => {
    expect(seen(source)).toEqual({ text, marks });
  });
});

describe('links', () => {
  const cases: [string, string, string[]][] = [
    ['[label](https://example.org/a_b)', 'label', ['link label → https://example.org/a_b']],
    ['[**bold**](tg://user?id=1)', 'bold', ['bold bold', 'link bold → tg://user?id=1']],
    ['[mail](mailto:a@b.example)', 'mail', ['link mail → mailto:a@b.example']],
    ['[](https://example.org)', 'https://example.org', ['link https://example.org → https://example.org']],
    ['[https://example.org](https://example.org)', 'https://example.org', []],
    [
      '<https://example.org/%20x> and https://example.org/_y_',
      'https://example.org/%20x and https://example.org/_y_',
      [],
    ],
    ['[run](javascript:alert(1))', 'run (javascript:alert(1))', []],
    ['[file](docs/日本.md)', 'file (docs/日本.md)', []],
    ['![a cat](https://example.org/cat.png)', 'a cat', ['link a cat → https://example.org/cat.png']],
    [
      '![](https://e.org/cat.png)',
      'https://e.org/cat.png',
      ['link https://e.org/cat.png → https://e.org/cat.png'],
    ],
    [
      '[![badge](https://i.example/b.svg)](https://example.org)',
      'badge',
      ['link badge → https://example.org'],
    ],
    ['[Luna]: hello', '[Luna]: hello', []],
    ['see [1]\n\n[1]: https://example.org', 'see [1]\n\n[1]: https://example.org', []],
  ];
  test.each(cases)('%j', (source, text, marks) => {
    expect(seen(source)).toEqual({ text, marks });
  });
});

describe('blocks', () => {
  const cases: [string, string, string[]][] = [
    ['# One **two**\ntext\n\n## Three', 'One two\ntext\n\nThree', ['bold One two', 'bold Three']],
    ['- a\n- b\n  - c\n    - d\n- e', '• a\n• b\n  ◦ c\n    ▪ d\n• e', []],
    ['3. a\n4. b\n\n   more', '3. a\n4. b\n\n   more', []],
    ['1) a\n2) b', '1) a\n2) b', []],
    ['- [ ] open\n- [x] done\n1. [X] numbered', '☐ open\n☑ done\n1. ☑ numbered', []],
    ['- first\n  second', '• first\n  second', []],
    ['- - both', '• ◦ both', []],
    ['a\n\n\n\nb', 'a\n\nb', []],
    ['a\n\n<br>\n\nb', 'a\n\nb', []],
    ['<br>', '<br>', []],
    ['text\n- item', 'text\n• item', []],
    ['> said\n> twice\n\nafter', 'said\ntwice\n\nafter', ['quote said\ntwice']],
    ['> a\n> > b', 'a\nb', ['quote a\nb', 'quote b']],
    ['- > in an item', '• in an item', ['quote in an item']],
    ['> - item\n> - other', '• item\n• other', ['quote • item\n• other']],
    ['```ts title\nlet a = 1;\n\n  b\n```', 'let a = 1;\n\n  b', ['pre(ts) let a = 1;\n\n  b']],
    ['~~~\nopen to the end', 'open to the end', ['pre() open to the end']],
    ['    indented', 'indented', ['pre() indented']],
    ['- ```\n  x\n  ```', '•\nx', ['pre() x']],
    ['a\n\n---\n\nb', 'a\n\n———\n\nb', []],
    ['```\n```', '```\n```', []],
    ['', '', []],
    [' \n\t\n', '', []],
  ];
  test.each(cases)('%j', (source, text, marks) => {
    expect(seen(source)).toEqual({ text, marks });
  });

  test('an empty item still shows', () => {
    expect(parse('- a\n-\n- b').text).toBe('• a\n• \n• b');
  });

  test('nested beyond reason: as written', () => {
    const source = `${'>'.repeat(200)} deep`;
    expect(parse(source)).toEqual({ text: source, marks: [] });
  });
});

describe('tables', () => {
  test('columns are aligned, wide letters counted as two', () => {
    const source =
      '| name | n | 都市 |\n|:--|--:|:-:|\n| **a** | 10 | 東京 |\n| [b](https://b.example) | 9 | 😀 |\n| c |';
    expect(parse(source).text).toBe(
      [
        'name                  |  n | 都市',
        '----------------------|----|-----',
        'a                     | 10 | 東京',
        'b (https://b.example) |  9 |  😀',
        'c',
      ].join('\n'),
    );
    expect(parse(source).marks).toMatchObject([{ kind: 'pre', offset: 0 }]);
  });

  test('a line break in a cell is one', () => {
    const source = '| a | b |\n|---|--:|\n| one<br>and more | 1<br>2 |\n| two | 3 |';
    expect(parse(source).text).toBe('a        | b\n---------|--\none      | 1\nand more | 2\ntwo      | 3');
    expect(parse(source, { tableWidth: 9 }).text).toBe('a: one\nand more\nb: 1\n2\n\na: two\nb: 3');
  });

  test('a very long cell does not widen the other rows', () => {
    const long = 'x'.repeat(500);
    const { text } = parse(`|a|b|\n|-|-|\n|${long}|1|\n|y|2|`);
    expect(text.split('\n').map((line) => line.length)).toEqual([5, 5, 504, 5]);
  });
});

describe('the short way for plain text', () => {
  const words = fc.stringMatching(/^[a-zA-Zäß小😀.,:;?() -]{0,12}$/u);
  const lines = fc.array(words, { maxLength: 8 }).map((texts) => texts.join('\n'));

  test('gives what the parser gives', () => {
    fc.assert(
      fc.property(lines, (source) => {
        fc.pre(isPlain(source));
        // A line of markup behind it sends the same text the long way.
        const long = parse(`${source}\n\n**end**`).text;
        expect(long).toBe(source.trim() === '' ? 'end' : `${plain(source)}\n\nend`);
      }),
      { numRuns: 500 },
    );
  });

  test('within a block gives what the parser gives', () => {
    const said = fc.stringMatching(
      /^[a-zß小😀.,:;?()'"!|#+@$%^={}/\]-]([ a-zß小😀.,:;?()'"!#+@$%^={}/\]-]{0,12}\S)?$/u,
    );
    fc.assert(
      fc.property(said, (line) => {
        // What stands between dollars may be a formula.
        fc.pre(!line.endsWith('#') && !/[|$]/.test(line));
        // An entity in the line sends it the long way.
        const { text, marks } = parse(`# ${line} &amp;`);
        expect(parse(`# ${line}`)).toEqual({
          text: text.slice(0, -2),
          marks: [{ ...marks[0], length: text.length - 2 }],
        });
      }),
      { numRuns: 500 },
    );
  });

  test('is not taken where something could be markup', () => {
    for (const source of [
      '- a',
      '1. a',
      '> a',
      '# a',
      '    a',
      'a\n===',
      'a *b*',
      'x | y',
      '&amp;',
      '\ta',
      '+ a',
    ]) {
      expect(isPlain(source), source).toBe(false);
    }
  });
});

test('half a surrogate pair is replaced', () => {
  expect(parse('a\ud83d b **\ude00**').text).toBe('a\ufffd b \ufffd');
});

describe('laws', () => {
  const markup = fc
    .array(
      fc.oneof(
        fc.constantFrom(
          '*',
          '**',
          '_',
          '`',
          '```\n',
          '~~',
          '[',
          '](',
          ')',
          '<',
          '>',
          '> ',
          '- ',
          '1. ',
          '# ',
          '|',
          '\n',
          '\n\n',
          '    ',
          '\\',
          '&amp;',
          '!',
          '|-|-|\n',
          '[x](http://a)',
        ),
        fc.stringMatching(/^[a-z小😀 ]{1,6}$/u),
      ),
      { maxLength: 40 },
    )
    .map((pieces) => pieces.join(''));

  test('marks lie within the text, none empty, nested and never crossing, in order', () => {
    fc.assert(
      fc.property(markup, (source) => {
        const { text, marks } = parse(source);
        marks.forEach((mark, index) => {
          const end = mark.offset + mark.length;
          expect(mark.length).toBeGreaterThan(0);
          expect(end).toBeLessThanOrEqual(text.length);
          for (const later of marks.slice(index + 1)) {
            expect(later.offset).toBeGreaterThanOrEqual(mark.offset);
            const laterEnd = later.offset + later.length;
            expect(later.offset >= end || laterEnd <= end, `${JSON.stringify(source)} crosses`).toBe(true);
          }
        });
      }),
      { numRuns: 1000 },
    );
  });

  test('no word is lost, and what is not blank gives something', () => {
    fc.assert(
      fc.property(markup, (source) => {
        const { text } = parse(source);
        if (source.trim() !== '') expect(text.trim()).not.toBe('');
        // Letters of addresses and of a fence's first line are not shown as text; the wide ones are never in those.
        const wide = (all: string) => [...all].filter((letter) => letter === '小').length;
        if (!/`|~~~|\]\(/.test(source)) expect(wide(text)).toBe(wide(source));
      }),
      { numRuns: 1000 },
    );
  });
});

describe('bad input stays quick', () => {
  const big = 100_000;
  const cases: Record<string, string> = {
    emphasis: '**a*'.repeat(big / 4),
    stars: `${'*'.repeat(big / 2)}a${'*'.repeat(big / 2)}`,
    brackets: '['.repeat(big),
    links: '[a]('.repeat(big / 4),
    realLinks: '[a](b) '.repeat(big / 7),
    quotes: '>'.repeat(big),
    lists: '- '.repeat(big / 2),
    ticks: Array.from({ length: 440 }, (_, index) => '`'.repeat(index + 1)).join(' '),
    cells: `${'|a'.repeat(big / 4)}\n${'|-'.repeat(big / 4)}`,
    deep: Array.from({ length: 300 }, (_, index) => `${' '.repeat(2 * index)}- a`).join('\n'),
    addresses: 'http://a.example/_x_ '.repeat(big / 20),
    slashes: '://'.repeat(big / 3),
    emoji: '👨‍👩‍👧‍👦'.repeat(big / 11),
    words: 'word '.repeat(60_000),
  };
  // The bound is generous, for slow machines: what is quadratic takes minutes.
  test.each(Object.keys(cases))('%s', (name) => {
    const started = performance.now();
    const { text } = parse(cases[name] ?? '');
    expect(text).not.toBe('');
    expect(performance.now() - started).toBeLessThan(5000);
  });
});

test('tokens that nobody expects are nothing', () => {
  expect(render([])).toEqual({ text: '', marks: [] });
});
