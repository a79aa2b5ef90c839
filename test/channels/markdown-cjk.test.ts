/** Emphasis where there are no spaces: beside Chinese, Japanese and Korean letters and punctuation. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parse } from '../../src/channels/markdown/parse.js';
import { SEEN } from './reading/platforms.js';
import { type Letter, visible } from './reading/seen.js';

/** What stands in bold, each stretch by itself, and the text as it is seen. */
function bold(seen: Letter[]): { text: string; bold: string[] } {
  const letters = visible(seen);
  const stretches: string[] = [];
  letters.forEach(({ letter, styles }, at) => {
    if (!styles.has('bold')) return;
    if (letters[at - 1]?.styles.has('bold')) stretches.push((stretches.pop() ?? '') + letter);
    else stretches.push(letter);
  });
  return { text: letters.map(({ letter }) => letter).join(''), bold: stretches };
}

const CASES: [string, string[]][] = [
  ['**注意：**请先备份。再打开**“设置”**，选**网络（有线）**。', ['注意：', '“设置”', '网络（有线）']],
  ['**「はい」**と答えた。', ['「はい」']],
  ['**텍스트(괄호)**는 좋다', ['텍스트(괄호)']],
  ['共**3**个，用**API**接口', ['3', 'API']],
  ['- **第一，**先看\n- 再说**（二）**', ['第一，', '（二）']],
];

describe.each(Object.entries(SEEN))('on %s', (_name, seen) => {
  test.each(CASES)('%s', (source, passages) => {
    const { text, bold: found } = bold(seen(source));
    expect(found).toEqual(passages);
    expect(text).not.toContain('*');
  });

  test('whatever stands in bold and beside it', () => {
    const letter = fc.constantFrom(
      ...'注意请打开网络はいカナ텍스트괄호、，。：；！？「」『』（）“”《》…ー'.split(''),
    );
    const inside = fc.string({ unit: letter, minLength: 1, maxLength: 6 });
    const word = fc.constantFrom('请', 'の', '한', 'カ');
    fc.assert(
      fc.property(word, inside, word, (before, within, after) => {
        expect(bold(seen(`${before}**${within}**${after}`))).toEqual({
          text: before + within + after,
          bold: [within],
        });
      }),
      { numRuns: 100 },
    );
  });
});

test('italic and struck out words, too', () => {
  expect(parse('这是*斜体（是）*的，~~删除（这个）~~了').marks).toMatchObject([
    { kind: 'italic' },
    { kind: 'strike' },
  ]);
});
