/** The lines by which two answers differ. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { diffOf, shownDiff } from '../../src/replay/again.js';

it('shows what differs, with some lines around', () => {
  const before = 'a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk';
  const after = 'a\nb\nc\nd\ne\nf\nG\nG2\nh\ni\nj\nk';
  expect(shownDiff(diffOf(before, after))).toEqual([
    ...['  …', '  d', '  e', '  f', '- g', '+ G', '+ G2', '  h', '  i', '  j', '  …'],
  ]);
});

it('shows nothing where nothing differs', () => {
  expect(shownDiff(diffOf('a\nb', 'a\nb'))).toEqual([]);
});

it('holds both texts, whatever they are', () => {
  const text = fc
    .array(fc.constantFrom('a', 'b', 'c', ''), { maxLength: 12 })
    .map((lines) => lines.join('\n'));
  fc.assert(
    fc.property(text, text, (before, after) => {
      const lines = diffOf(before, after);
      const of = (other: string) =>
        lines.flatMap(({ sign, line }) => (sign === other ? [] : [line])).join('\n');
      expect([of('+'), of('-')]).toEqual([before, after]);
    }),
  );
});

it('takes no time on texts that have nothing in common', () => {
  const lines = (letter: string) => Array.from({ length: 20_000 }, (_, n) => `${letter}${n}`).join('\n');
  expect(diffOf(lines('a'), lines('b'))).toHaveLength(40_000);
});
