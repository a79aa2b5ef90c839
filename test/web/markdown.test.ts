/** Markdown of messages as elements: nothing in them runs, leads elsewhere or is lost, and finished blocks stay. */
import fc from 'fast-check';
import type { ComponentChild, VNode } from 'preact';
import { describe, expect, it } from 'vitest';
import { type Finished, grown, mayLead, NOTHING } from '../../web/src/kit/markdown.tsx';

/** All elements in the blocks of a text, also those that components get. */
function elementsOf(text: string): VNode<Record<string, unknown>>[] {
  return within(blocksOf(text));
}

function blocksOf(text: string): VNode[] {
  return grown(NOTHING, text, false, 2)[1];
}

function within(child: ComponentChild | ComponentChild[]): VNode<Record<string, unknown>>[] {
  if (Array.isArray(child)) return child.flatMap(within);
  if (typeof child !== 'object' || child === null || !('props' in child)) return [];
  const vnode = child as VNode<Record<string, unknown>>;
  return [vnode, ...within(vnode.props.children as ComponentChild)];
}

function textOf(child: ComponentChild | ComponentChild[]): string {
  if (typeof child === 'string') return child;
  if (Array.isArray(child)) return child.map(textOf).join('');
  if (typeof child !== 'object' || child === null || !('props' in child)) return '';
  const { code, children } = (child as VNode<{ code?: string }>).props;
  return code ?? textOf(children as ComponentChild);
}

const tagsOf = (text: string) =>
  elementsOf(text).map(({ type }) => (typeof type === 'string' ? type : type.name));

describe('Markdown as elements', () => {
  it('makes paragraphs, emphasis, lists, tables and code', () => {
    expect(tagsOf('Hello *you* and **me**')).toEqual(['p', 'em', 'strong']);
    expect(tagsOf('- a\n- b')).toEqual(['ul', 'li', 'span', 'li', 'span']);
    expect(tagsOf('| a |\n|--:|\n| 1 |')).toEqual(['div', 'table', 'thead', 'tr', 'th', 'tbody', 'tr', 'td']);
    expect(tagsOf('```js\nlet a\n```')).toEqual(['CodeBlock']);
  });

  it('begins headings below those of the page', () => {
    expect(tagsOf('# one\n\n## two\n\n###### six')).toEqual(['h3', 'h4', 'h6']);
  });

  it.each([
    '<script>alert(1)</script>',
    '<img src=x onerror=alert(1)>',
    'a <svg onload=alert(1)> b',
    '<a href="javascript:alert(1)">x</a>',
    '<style>*{}</style>',
    '<button>Approve</button>',
  ])('shows %s as text', (text) => {
    expect(textOf(blocksOf(text)).replaceAll('\n', '')).toContain(text);
    expect(tagsOf(text).filter((tag) => tag !== 'p')).toEqual([]);
  });

  it.each([
    '[x](javascript:alert(1))',
    '[x](JaVaScRiPt:alert(1))',
    '[x](&#106;avascript:alert(1))',
    '[x](data:text/html,<script>alert(1)</script>)',
    '[x](vbscript:x)',
    '[x](file:///etc/passwd)',
    '![x](javascript:alert(1))',
    '<javascript:alert(1)>',
  ])('leads nowhere by %s', (text) => {
    expect(tagsOf(text)).not.toContain('a');
  });

  it('opens links of the web, of mail and below the page beside it, without a way back', () => {
    for (const address of ['https://a.example/', 'http://a.example/', 'mailto:a@a.example', 'files/a.txt']) {
      const [link] = elementsOf(`[x](${address})`).filter(({ type }) => type === 'a');
      expect(link?.props).toMatchObject({ href: address, target: '_blank', rel: 'noopener noreferrer' });
    }
  });

  it('turns pictures into links: showing one would tell its server', () => {
    const all = elementsOf('![a cat](https://a.example/cat.png)');
    expect(all.map(({ type }) => type)).toEqual(['p', 'a']);
    expect(textOf(all[1])).toBe('a cat');
  });

  it('lets no address lead to code, whatever it is', () => {
    fc.assert(
      fc.property(
        fc.constantFrom('javascript:', 'data:', 'vbscript:', 'blob:'),
        fc.string(),
        (scheme, rest) => {
          expect(mayLead(scheme + rest)).toBe(false);
        },
      ),
    );
  });

  it('makes only known elements without attributes of events, whatever the text', () => {
    const pieces = fc.constantFrom(
      ...[
        '<',
        '>',
        '*',
        '**',
        '`',
        '```',
        '\n',
        '\n\n',
        '# ',
        '- ',
        '1. ',
        '> ',
        '|',
        '|-|',
        '[',
        ']',
        '(',
        ')',
      ],
      ...['!', 'a', 'onerror=', 'javascript:', 'https://a.example', '&lt;', '\\', '~~', 'style', '"', "'"],
    );
    const known = new Set(
      'p span h3 h4 h5 h6 div table thead tbody tr th td ul ol li blockquote strong em s a br hr code CodeBlock'.split(
        ' ',
      ),
    );
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 40 }), (parts) => {
        for (const { type, props } of elementsOf(parts.join(''))) {
          expect(known).toContain(typeof type === 'string' ? type : type.name);
          for (const name of Object.keys(props)) expect(name).not.toMatch(/^on|^style$|HTML/);
          if ('href' in props) expect(mayLead(String(props.href))).toBe(true);
        }
      }),
    );
  });

  it('shows quotes in quotes without end as written', () => {
    const text = `${'> '.repeat(200)}deep`;
    expect(tagsOf(text)).toEqual(['p']);
  });
});

describe('a text of 500 kB', () => {
  const times = (text: string) => text.repeat(Math.ceil(500_000 / text.length));

  it.each([
    ['line ends', times('a\n')],
    ['blanks at line ends', times('a  \n')],
    ['code', times('`a')],
    ['links', times('[a](http://b.c) ')],
    ['bare addresses', times('http://a.b ')],
    ['emphasis that opens', times('*a **b ')],
    ['emphasis that closes', times('***a** b* ')],
    ['paragraphs', times('a\n\n')],
    ['lists', times('- a\n  - b\n')],
    ['lists in lists', Array.from({ length: 700 }, (_, n) => `${'  '.repeat(n)}- a\n`).join('')],
    ['quotes', times('> a\nb\n')],
    ['brackets', times('[')],
    ['cells of one line', `|${'a|'.repeat(10_000)}\n|${'-|'.repeat(10_000)}\n${'|x\n'.repeat(1000)}`],
    ['lines of a table', `|a|b|\n|-|-|\n${times('|1|2|\n')}`],
  ])('of %s makes a bounded number of elements, and loses none of its words', (_, text) => {
    const began = performance.now();
    const blocks = blocksOf(text);
    // Four times of what it takes beside other tests.
    expect(performance.now() - began).toBeLessThan(10_000);
    let elements = 0;
    for (let left: unknown[] = [blocks]; left.length > 0; ) {
      const next: unknown[] = [];
      for (const each of left) {
        if (Array.isArray(each)) for (const inner of each) next.push(inner);
        else if (typeof each === 'object' && each !== null) {
          elements++;
          next.push((each as VNode<{ children?: unknown }>).props.children);
        }
      }
      left = next;
    }
    expect(elements).toBeLessThan(40_000);
    const letters = (all: string) => all.replace(/[^a-z0-9]/g, '').length;
    expect(letters(textOf(blocks))).toBeGreaterThanOrEqual(letters(text.replace(/\(http:[^)]*\)/g, '')));
  });

  it('grows without holding up the page, paragraph by paragraph', () => {
    let finished: Finished = NOTHING;
    let text = '';
    let slowest = 0;
    for (let n = 0; n < 60; n++) {
      text += '**a** b\n\n'.repeat(1000);
      const began = performance.now();
      [finished] = grown(finished, text, true, 2);
      slowest = Math.max(slowest, performance.now() - began);
    }
    expect(slowest).toBeLessThan(500);
    expect(finished.blocks.length).toBeLessThan(20_000);
  });
});

describe('a text that grows', () => {
  const TEXT =
    'First.\n\n# Head\n\n- one\n- two\n\n  more of two\n\n```js\nlet a = 1;\n\nlet b;\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n> quoted\nlazily\n\nTitle\n===\n\n1. x\n2. y\n\nEnd.';

  it('looks at every moment as if it had come at once', () => {
    let finished: Finished = NOTHING;
    for (let end = 1; end <= TEXT.length; end++) {
      const [next, blocks] = grown(finished, TEXT.slice(0, end), true, 2);
      finished = next;
      const whole = grown(NOTHING, TEXT.slice(0, end), true, 2)[1];
      expect(shapeOf(blocks)).toEqual(shapeOf(whole));
    }
    const [, last] = grown(finished, TEXT, false, 2);
    expect(shapeOf(last)).toEqual(shapeOf(blocksOf(TEXT)));
  });

  it('does so however it is cut into words, and whatever it says', () => {
    const piece = fc.constantFrom(
      'a',
      ' ',
      '\n',
      '\n\n',
      '- ',
      '```\n',
      '# ',
      '> ',
      '| a |\n|-|\n',
      '    x',
      '1. ',
      '---\n',
      '===\n',
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
        let finished: Finished = NOTHING;
        let text = '';
        for (const each of pieces) {
          text += each;
          [finished] = grown(finished, text, true, 2);
        }
        expect(shapeOf(grown(finished, text, false, 2)[1])).toEqual(shapeOf(blocksOf(text)));
      }),
    );
  });

  it('keeps the very elements of blocks that are finished', () => {
    const [first, before] = grown(NOTHING, 'One.\n\nTwo.\n\nThr', true, 2);
    const [, after] = grown(first, 'One.\n\nTwo.\n\nThree and', true, 2);
    expect(after[0]).toBe(before[0]);
    expect(after[1]).toBe(before[1]);
    expect(after[2]).not.toBe(before[2]);
  });

  it('begins anew when its words are taken back', () => {
    const [first] = grown(NOTHING, 'One.\n\nTwo.\n\nThree', true, 2);
    const [, after] = grown(first, 'Other.', false, 2);
    expect(textOf(after)).toBe('Other.');
  });

  it('leaves code without colours until its fence is closed', () => {
    const open = grown(NOTHING, '```js\nlet a', true, 2)[1];
    expect(within(open)[0]?.props).toMatchObject({ isOpen: true });
    const closed = grown(NOTHING, '```js\nlet a\n```\n\nAnd', true, 2)[1];
    expect(within(closed)[0]?.props).toMatchObject({ isOpen: false, code: 'let a', language: 'js' });
  });
});

/** Types, keys and words: all that is seen. */
function shapeOf(child: ComponentChild | ComponentChild[]): unknown {
  if (Array.isArray(child)) return child.map(shapeOf);
  if (typeof child !== 'object' || child === null || !('props' in child)) return child;
  const { type, key, props } = child as VNode<Record<string, unknown>>;
  const { children, isOpen: _isOpen, ...rest } = props;
  return { type, key, rest, children: shapeOf(children as ComponentChild) };
}
