/** A plan as text and as boxes of the same text, and how files can be looked at. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { asTyped, planIn, type Step, ticked, withLineEnds } from '../../web/src/work/plan.ts';
import { beginningIn, previewOf } from '../../web/src/work/preview-kind.ts';

const steps = (source: string) => planIn(source).filter((part): part is Step => part.kind === 'step');

describe('the steps of a plan', () => {
  it('are those of all kinds of lists, as deep as they stand', () => {
    const source = [
      '# The **garden**',
      '- [ ] dig',
      '  * [x] left',
      '    1. [X] `spade`',
      '  + [ ] right <!-- s4 -->',
      '10) [ ] sow',
      '> - [ ] quoted',
      '\t- [ ] below it',
      '- [ ]',
      '- [link](x) is none',
      '- [x]is none',
      '[ ] is none',
    ].join('\r\n');
    expect(planIn(source).map(({ kind, text }) => `${kind} ${text}`)).toEqual([
      'heading The garden',
      ...['dig', 'left', 'spade', 'right', 'sow', 'quoted', 'below it', ''].map((text) => `step ${text}`),
    ]);
    expect(steps(source).map(({ isDone }) => isDone)).toEqual([
      false,
      true,
      true,
      false,
      false,
      false,
      false,
      false,
    ]);
    expect(
      steps(source)
        .map(({ depth }) => depth)
        .slice(0, 5),
    ).toEqual([0, 1, 2, 1, 0]);
  });

  it('in code are none, whatever closes it', () => {
    const source = '- [ ] a\n```md\n- [ ] b\n~~~\n- [ ] c\n````\n- [ ] d\n  ~~~\n- [ ] never';
    expect(steps(source).map(({ text }) => text)).toEqual(['a', 'd']);
  });

  it('are ticked by one character, and nothing else changes', () => {
    const line = fc.constantFrom(
      '- [ ] a',
      '  - [x] b',
      '1. [X] c',
      '# d',
      '```',
      'e - [ ] f',
      '> * [ ]',
      '',
    );
    const ends = fc.constantFrom('\n', '\r\n', '\r');
    fc.assert(
      fc.property(fc.array(fc.tuple(line, ends)), (lines) => {
        const source = lines.flat().join('');
        for (const step of steps(source)) {
          expect('[ ][x][X]').toContain(source.slice(step.at - 1, step.at + 2));
          const after = ticked(source, step);
          expect(after.length).toBe(source.length);
          const changed = [...after].flatMap((char, n) => (char === source[n] ? [] : [n]));
          expect(changed).toEqual([step.at]);
          const [now] = steps(after).filter(({ at }) => at === step.at);
          expect(now).toEqual({ ...step, isDone: !step.isDone });
        }
      }),
    );
  });
});

describe('line ends', () => {
  const text = fc
    .array(fc.tuple(fc.constantFrom('a', 'b', ''), fc.constantFrom('\n', '\r\n', '\r')))
    .map((lines) => lines.flat().join(''));

  it('of a text that nobody changed stay as they are', () => {
    fc.assert(
      fc.property(text, (source) => {
        expect(withLineEnds(source, asTyped(source))).toBe(source);
      }),
    );
  });

  it('never change the words that were typed', () => {
    fc.assert(
      fc.property(text, text.map(asTyped), (before, typed) => {
        expect(asTyped(withLineEnds(before, typed))).toBe(typed);
      }),
    );
  });

  it('of lines around a change stay, and new lines have the usual one', () => {
    expect(withLineEnds('a\r\nb\r\nc\r\n', 'a\nnew\nlines\nc\n')).toBe('a\r\nnew\r\nlines\r\nc\r\n');
    expect(withLineEnds('a\nb\r\nc\nd', 'a\nb\nc\nd\ne')).toBe('a\nb\r\nc\nd\ne');
    expect(withLineEnds('a\r\nb', 'a\nb\n')).toBe('a\r\nb\r\n');
  });
});

describe('a file', () => {
  it.each([
    ['image/svg+xml', 'a.svg', 10, { kind: 'picture' }],
    ['IMAGE/PNG; a=b', 'a.png', 10, { kind: 'picture' }],
    ['image/png', 'a.png', 20_000_001, { kind: 'none', why: 'large' }],
    ['image/heic', 'a.heic', 10, { kind: 'none', why: 'type' }],
    ['application/pdf', 'a.pdf', 10, { kind: 'pdf' }],
    ['application/pdf', 'a.pdf', 50_000_000, { kind: 'none', why: 'large' }],
    ['text/markdown', 'a.md', 50_000_000, { kind: 'markdown' }],
    ['text/html', 'a.html', 10, { kind: 'code', language: 'html' }],
    ['application/xhtml+xml', 'a.xhtml', 10, { kind: 'code', language: 'xhtml' }],
    ['application/json', 'a.json', 10, { kind: 'code', language: 'json' }],
    ['text/plain', 'a.txt', 10, { kind: 'code', language: '' }],
    ['application/octet-stream', 'a.svg', 10, { kind: 'none', why: 'type' }],
    ['video/mp4', 'a.mp4', 10, { kind: 'none', why: 'type' }],
  ])('of %s, called %s, with %d bytes, is looked at as %j', (type, name, bytes, kind) => {
    expect(previewOf({ type, name, bytes })).toEqual(kind);
  });

  it('that only calls itself a text is none; a character that was cut in two is left out', () => {
    expect(beginningIn(new Uint8Array([65, 0]), false)).toBe(null);
    const bytes = new TextEncoder().encode('aä');
    expect(beginningIn(bytes.subarray(0, 2), true)).toEqual({ text: 'a', isCut: true });
    expect(beginningIn(bytes, false)).toEqual({ text: 'aä', isCut: false });
  });
});
