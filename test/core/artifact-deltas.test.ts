/** Blocks of artifacts in an answer: which are taken out, what stays, and how long that takes. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { deltasIn, wordsSoFar } from '../../src/core/artifacts.js';

const given = (deltas: unknown) => JSON.stringify({ artifact_deltas: deltas });
const block = (deltas: unknown, name = 'json', fence = '```') =>
  `${fence}${name}\n${given(deltas)}\n${fence}`;
const A = { id: 'a', content: '# A' };
const B = { id: 'b.csv', title: 'B', type: 'text/csv', content: 'x,y' };

describe('a well-formed block', () => {
  it.each([
    ['json', '```'],
    ['artifact_deltas', '```'],
    ['JSON', '````'],
    ['json', '~~~'],
  ])('called %s within %s is taken out', (name, fence) => {
    const text = `Here it is.\n\n${block([A, B], name, fence)}\n\nEnjoy.`;
    expect(deltasIn(text)).toEqual({ text: 'Here it is.\n\nEnjoy.', deltas: [A, B], leftOut: [] });
  });

  it('may be all there is, be indented, have other line ends, and hold null for what is left out', () => {
    const pretty = JSON.stringify(
      { artifact_deltas: [{ ...A, title: null, type: null, ref: null }] },
      null,
      2,
    );
    const text = `  \`\`\`json\n${pretty}\n  \`\`\`  `.replaceAll('\n', '\r\n');
    expect(deltasIn(text)).toEqual({ text: '', deltas: [A], leftOut: [] });
  });

  it('may refer instead of holding anything; more about an artifact is passed over', () => {
    const ref = { id: 'a', title: 'A', ref: 'https://example.org/a' };
    expect(deltasIn(block([{ ...ref, size: 5 }])).deltas).toEqual([ref]);
  });

  it('several are joined; of two with one id the last holds, in its place', () => {
    const text = `one\n${block([A, B])}\ntwo\n${block([{ id: 'a', content: 'new' }])}\nthree`;
    expect(deltasIn(text)).toEqual({
      text: 'one\n\ntwo\n\nthree',
      deltas: [B, { id: 'a', content: 'new' }],
      leftOut: [],
    });
  });

  it('counts item by item, whatever else stands beside them: bad ones are left out, with why', () => {
    const bad = [
      { id: '../x', content: '' },
      'b',
      { id: 'c', content: { d: 1 } },
      { ...A, type: 'markdown' },
    ];
    const more = JSON.stringify({ version: 1, artifact_deltas: [...bad, A, { id: '.b' }] });
    expect(deltasIn(`See:\n\`\`\`json\n${more}\n\`\`\``)).toEqual({
      text: 'See:',
      deltas: [A, { id: '.b' }],
      leftOut: [
        'item 1: id is no name of an artifact',
        expect.stringMatching(/^item 2: Invalid input/),
        expect.stringMatching(/^item 3: content Invalid input/),
        'item 4: type is no MIME type',
      ],
    });
  });

  it('keeps fences that stand in a content', () => {
    const content = '```js\nrun()\n```\n';
    expect(deltasIn(block([{ id: 'a', content }])).deltas).toEqual([{ id: 'a', content }]);
  });
});

describe('what stays text, as it is', () => {
  const bad: [string, string][] = [
    ['an id that leads out', block([{ id: '../../x', content: '' }])],
    ['an absolute id', block([{ id: '/etc/passwd', content: '' }])],
    ['an id that is too long', block([{ id: 'x'.repeat(65), content: '' }])],
    ['an id with a line break', block([{ id: 'a\n', content: '' }])],
    ['no id', block([{ content: '' }])],
    ['content that is no text', block([{ id: 'a', content: { a: 1 } }])],
    ['a type that is none', block([{ id: 'a', content: '', type: 'markdown' }])],
    ['only bad ones', block([{ id: '..', content: '' }, 'a', { id: 'b', content: 7 }])],
    ['an empty list', block([])],
    ['no list', block(A)],
    ['JSON that is cut off', '```json\n{"artifact_deltas":[{"id":"a","content":"x\n```'],
    ['a fence that is not closed', `\`\`\`json\n${given([A])}`],
    ['a fence of another name', block([A], 'js')],
    ['a fence without a name', block([A], '')],
    ['no fence', given([A])],
    ['a fence within a longer one', `\`\`\`\`markdown\n${block([A])}\n\`\`\`\``],
    ['a fence that is closed by a shorter one', `\`\`\`\`json\n${given([A])}\n\`\`\``],
    ['an indented block', `    \`\`\`json\n    ${given([A])}\n    \`\`\``],
  ];
  it.each(bad)('%s', (_, wrong) => {
    const text = `  before \n\n\n${wrong}\n\n\n after  `;
    expect(deltasIn(text)).toEqual({ text, deltas: [], leftOut: [] });
  });

  it('beside one that is taken out', () => {
    const wrong = block([{ id: '../x', content: '' }]);
    expect(deltasIn(`${wrong}\n${block([A])}`)).toEqual({ text: wrong, deltas: [A], leftOut: [] });
  });

  it('any text without such a block', () => {
    const pieces = fc.constantFrom(
      '```',
      '```json\n',
      '~~~',
      '\n',
      '{"artifact_deltas"',
      ':[',
      ']}',
      '\r\n',
      '    ',
      '`',
    );
    const texts = fc.array(fc.oneof(pieces, fc.string())).map((some) => some.join(''));
    fc.assert(
      fc.property(texts, (text) => {
        expect(deltasIn(text)).toEqual({ text, deltas: [], leftOut: [] });
      }),
    );
  });
});

it('takes a time that grows no faster than the text', () => {
  const hostile = [
    '```json\n{"artifact_deltas"\n'.repeat(40_000),
    `${'`'.repeat(500_000)}json\n"artifact_deltas"`,
    `"artifact_deltas"\n\`\`\`json${' '.repeat(500_000)}x`,
    `${block([A])}${' '.repeat(500_000)}x`,
    `${' '.repeat(500_000)}${block([A])}\n`,
    `${block([A])}\n`.repeat(20_000),
    `"artifact_deltas"${'\n```'.repeat(200_000)}`,
  ];
  const started = performance.now();
  for (const text of hostile) {
    deltasIn(text);
    wordsSoFar(text);
  }
  expect(performance.now() - started).toBeLessThan(4_000);
});

describe('while it is written', () => {
  it('nothing of a block is ever shown', () => {
    const text = `Here it is.\n\n${block([A, B])}\n\nEnjoy.`;
    for (let end = 0; end <= text.length; end++) {
      expect('Here it is.\n\nEnjoy.').toContain(wordsSoFar(text.slice(0, end)).trimEnd());
    }
    const other = `Here it is.\n\n${block([A], 'artifact_deltas', '~~~~')}`;
    for (let end = 0; end <= other.length; end++) {
      expect('Here it is.').toContain(wordsSoFar(other.slice(0, end)).trimEnd());
    }
  });

  it('other blocks are, and words stay as they are', () => {
    for (const text of ['```js\nlet a', '```json\n{"a": 1', 'a ``` b', '```json\n[', 'plain'])
      expect(wordsSoFar(text)).toBe(text);
  });
});
