import fc from 'fast-check';
import markdownIt from 'markdown-it';
import { describe, expect, it } from 'vitest';
import { findHeadings, isBlank } from '../../src/groups/tiers.js';

const starts = (source: string) => findHeadings(source, null).headings.map((heading) => heading.start);
const titles = (source: string) => findHeadings(source, null).headings.map((heading) => heading.title);

describe('findHeadings', () => {
  it('finds headings of level 1 and 2, and no deeper ones', () => {
    expect(titles('# a\n## b ##\n### c\n   ## d\n    ## code\n#no\n##\n')).toEqual(['a', 'b', 'd', '']);
  });

  it('finds underlined headings, of several lines too', () => {
    expect(titles('Title\n===\n\ntwo\nlines\n---\n\n---\n\n===\n')).toEqual(['Title', 'two lines']);
    expect(starts('x\n\ntwo\nlines\n---\n')).toEqual([3]);
  });

  it('takes no thematic break, list item or quotation for an underlined heading', () => {
    expect(titles('- item\n---\n\n> said\n---\n\n# h\n---\n\n- item\nlazy\n---\n    code\n---\n')).toEqual([
      'h',
    ]);
  });

  it('looks into no code fence', () => {
    expect(titles('```\n## a\n~~~\n## b\n````\n## c\n\n~~~ `x`\n## d\n~~~\n## e\n')).toEqual(['c', 'e']);
    expect(titles('``` a`b\n## a\n')).toEqual(['a']);
    expect(titles('- ```\n  ## a\n  ```\n## b\n\n1. ```\n   ## c\n## d\n')).toEqual(['b', 'd']);
  });

  it('tells what would close a fence that is left open', () => {
    expect(findHeadings('a\n~~~~ js\n## x\n', null).openFences).toEqual([{ at: 15, closer: '~~~~' }]);
    expect(findHeadings('```\n## x\n## Stop\n## y\n', /^## Stop$/)).toEqual({
      headings: [
        { start: 9, bodyStart: 17, title: 'Stop' },
        { start: 17, bodyStart: 22, title: 'y' },
      ],
      openFences: [{ at: 9, closer: '```' }],
    });
  });

  it('knows all three line ends', () => {
    expect(titles('# a\r\nb\r\n---\r\n```\r\n# c\r\n```\r\n# d\r# e\r\rf\r===\r')).toEqual([
      'a',
      'b',
      'd',
      'e',
      'f',
    ]);
  });

  it('agrees with a whole Markdown parser', () => {
    const flush = [
      ...['', '', 'text', 'two words', '# one', '## two ##', '### three', '##', '#tag'],
      ...[
        '---',
        '===',
        '- - -',
        '***',
        '```',
        '````',
        '``` js',
        '~~~',
        '~~~ `',
        '> quoted',
        '``` `no` fence',
      ],
    ];
    const indented = ['    ## code', '   ## in', '  --- ', '  ```'];
    const listed = ['- item', '1. item', '- ```', '* ~~~'];
    // What is indented below a list item belongs to it, which only a whole parser can tell.
    const lines = fc.oneof(
      fc.array(fc.constantFrom(...flush, ...indented), { maxLength: 14 }),
      fc.array(fc.constantFrom(...flush, ...listed), { maxLength: 14 }),
    );
    const text = fc.tuple(lines, fc.constantFrom('\n', '\r\n', '\r')).map(([lines, eol]) => lines.join(eol));
    fc.assert(
      fc.property(text, (source) => {
        expect(starts(source)).toEqual(reference(source));
      }),
      { numRuns: 3000 },
    );
  });

  it('reads megabytes in a moment', () => {
    const source = '## a\n\ntext\n---\n- item\n```x\n'.repeat(400_000);
    const before = performance.now();
    findHeadings(source, /^## b$/);
    findHeadings(`- item\n${'lazy\n===\n'.repeat(100_000)}`, null);
    expect(performance.now() - before).toBeLessThan(5_000);
  });
});

describe('isBlank', () => {
  it('passes over blank lines and deeper headings', () => {
    expect(isBlank('\n \t\r\n### x\n\n####\n')).toBe(true);
    expect(isBlank('')).toBe(true);
    expect(isBlank('\n###x\n')).toBe(false);
    expect(isBlank(`${'\n'.repeat(50_000)}x`)).toBe(false);
  });
});

/** Where the headings of level 1 and 2 begin whose home is the document itself. */
function reference(source: string): number[] {
  const lines = [0, ...Array.from(source.matchAll(/\r\n|\r|\n/g), (end) => end.index + end[0].length)];
  return markdownIt('commonmark')
    .parse(source, {})
    .filter(({ type, level, tag }) => type === 'heading_open' && level === 0 && /^h[12]$/.test(tag))
    .map(({ map }) => lines[map?.[0] ?? -1] ?? -1);
}
