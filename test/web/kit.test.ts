/** Small laws of the page's pieces: differences, commands that complete themselves, sizes, addresses of chats. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { completionsFor } from '../../web/src/chat/complete.ts';
import { slugOf } from '../../web/src/chat/slug.ts';
import { differenceOf } from '../../web/src/kit/difference.tsx';
import { highlighted, type Piece } from '../../web/src/kit/highlight.ts';
import { movedBy } from '../../web/src/kit/listbox.tsx';
import { niceAbove } from '../../web/src/kit/plot.tsx';
import { sizeInWords } from '../../web/src/kit/words.ts';

describe('the difference of two texts', () => {
  it('holds both, whatever they are', () => {
    const text = fc
      .array(fc.constantFrom('a', 'b', 'c', ''), { maxLength: 12 })
      .map((lines) => lines.join('\n'));
    fc.assert(
      fc.property(text, text, (before, after) => {
        const lines = differenceOf(before, after);
        const without = (kind: string) =>
          lines.flatMap((each) => (each.kind === kind ? [] : [each.line])).join('\n');
        expect(without('new')).toBe(before);
        expect(without('gone')).toBe(after);
      }),
    );
  });

  it('marks only what differs', () => {
    expect(differenceOf('a\nb\nc', 'a\nx\nc').map(({ kind }) => kind)).toEqual([
      'same',
      'gone',
      'new',
      'same',
    ]);
  });

  it('passes over other line ends', () => {
    expect(differenceOf('a\r\nb', 'a\nb').every(({ kind }) => kind === 'same')).toBe(true);
  });
});

describe('commands that complete themselves', () => {
  const commands = [
    { name: 'stop', description: 'Stop' },
    { name: 'status', description: 'Status' },
    {
      name: 'memory',
      description: 'Memory',
      verbs: [
        { name: 'show', description: 'Show' },
        { name: 'forget', description: 'Forget', rest: { name: 'text', required: true } },
      ],
    },
  ];
  const textsFor = (text: string) => completionsFor(text, commands).map((each) => each.text);

  it('offers names, then verbs', () => {
    expect(textsFor('/')).toEqual(['/stop', '/status', '/memory ']);
    expect(textsFor('/ST')).toEqual(['/stop', '/status']);
    expect(textsFor('/memory ')).toEqual(['/memory show', '/memory forget ']);
    expect(textsFor('/memory f')).toEqual(['/memory forget ']);
  });

  it.each(['', 'hello', 'and/or', '/memory forget tea', '/unknown ', ' /stop', '/stop\nmore'])(
    'offers nothing for %j',
    (text) => {
      expect(textsFor(text)).toEqual([]);
    },
  );

  it('goes round by the arrows', () => {
    expect([movedBy('ArrowDown', 1, 2), movedBy('ArrowUp', 0, 2), movedBy('a', 0, 2)]).toEqual([0, 1, null]);
  });
});

describe('code', () => {
  const wordsOf = (pieces: Piece[]): string =>
    pieces.map((piece) => (typeof piece === 'string' ? piece : wordsOf(piece.inside))).join('');
  const kindsOf = (pieces: Piece[]): string[] =>
    pieces.flatMap((piece) => (typeof piece === 'string' ? [] : [piece.kind, ...kindsOf(piece.inside)]));

  it.each([
    ['ts', 'const a: string = `x <b>`; // <script>\nclass B extends A { static #c = /d/g }'],
    ['html', '<style>a { color: red }</style><script>let a = "</b>";</script>'],
    ['bash', 'find . -printf "%s\\n" | sort # done'],
    ['python', 'def f(x: int) -> str:\n    """Doc."""\n    return f"{x!r}"'],
  ])('in %s is the same text, in coloured pieces', (language, code) => {
    const pieces = highlighted(code, language);
    expect(wordsOf(pieces)).toBe(code);
    expect(kindsOf(pieces).length).toBeGreaterThan(3);
  });

  it.each(['ini', 'c', 'cpp', 'markdown'])('of one endless word is plain in %s, at once', (language) => {
    const code = language === 'markdown' ? '['.repeat(50_000) : 'x'.repeat(50_000);
    const began = performance.now();
    expect(highlighted(code, language)).toEqual([code]);
    expect(performance.now() - began).toBeLessThan(500);
  });

  it.each([
    ['js', '\n'.repeat(50_000)],
    ['ts', '\r\n'.repeat(25_000)],
    ['ruby', ' \t\n'.repeat(16_000)],
    ['ini', `${'a.'.repeat(499)}\n`.repeat(50)],
    ['toml', 'a.\n'.repeat(16_000)],
  ])('of empty lines or keys without end is plain in %s, at once', (language, code) => {
    const began = performance.now();
    expect(highlighted(code, language)).toEqual([code]);
    expect(performance.now() - began).toBeLessThan(300);
  });

  it('is coloured with as many empty lines, and words as long, as people write', () => {
    expect(kindsOf(highlighted(`let a;${'\n'.repeat(100)}let b; // ${'x'.repeat(250)}`, 'js'))).toEqual([
      'code-keyword',
      'code-keyword',
      'code-comment',
    ]);
    expect(kindsOf(highlighted('a.b = 1', 'toml'))).toContain('code-attr');
  });

  it('in an unknown language is plain', () => {
    expect(highlighted('a b', 'nonsense')).toEqual(['a b']);
  });
});

it('says sizes in words', () => {
  expect([0, 999, 1_500, 20_000, 3_400_000].map((bytes) => sizeInWords(bytes, 'en'))).toEqual([
    '0 bytes',
    '999 bytes',
    '1.5 kB',
    '20 kB',
    '3.4 MB',
  ]);
});

it('ends a plot at a round number', () => {
  expect([0, 0.3, 1, 3, 17, 900].map(niceAbove)).toEqual([1, 0.5, 1, 5, 20, 1000]);
});

it('makes the address of a chat from its title', () => {
  expect(['Garden & Küche', '  --x--  ', '漢字'].map(slugOf)).toEqual(['garden-kuche', 'x', '']);
});
