import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sharedWords, wordFinder } from '../../src/conversation/commands/memory-lines.js';
import { code, oneLine, withFencesClosed } from '../../src/conversation/quoting.js';

const wordsOf = wordFinder();
const shared = (a: string, b: string) => sharedWords(wordsOf(a), wordsOf(b));

describe('the words two texts share', () => {
  it('are found in any script, whatever the case and form of letters', () => {
    expect(shared('Likes ROSES, and tea', 'tea with roses?')).toEqual(['roses', 'tea']);
    expect(shared('Cafe\u0301 am Markt', 'das CAFÉ')).toEqual(['café']);
    expect(shared('她喜欢玫瑰', '玫瑰很美')).toEqual(['玫瑰']);
    expect(shared('ชอบดอกกุหลาบ', 'กุหลาบสวย')).not.toEqual([]);
    expect(shared('Любит розы', 'красные РОЗЫ')).toEqual(['розы']);
    expect(shared('room 42', '42 is it')).toEqual(['42']);
  });

  it('are none where only little words are the same', () => {
    expect(shared('The cat is in the house', 'What is in the box with the lid?')).toEqual([]);
    expect(shared('Der Hund ist da', 'Das ist der Anfang')).toEqual([]);
    expect(shared('我的书', '你的')).toEqual([]);
  });
});

describe('quoted text', () => {
  it('stands whole within its backticks', () => {
    expect(code('a `b` c')).toBe('``a `b` c``');
    expect(code('`b`')).toBe('`` `b` ``');
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('`', 'a', ' ') }), (text) => {
        const [, ticks = '', inner = ''] = /^(`+)([\s\S]*?)\1$/.exec(code(text)) ?? [];
        expect(inner).toContain(text);
        expect(inner).not.toMatch(new RegExp(`(?<!\`)${ticks}(?!\`)`));
      }),
    );
  });

  it('is one line within its limit, and no character is halved', () => {
    expect(oneLine(' a\n\tb ', 10)).toBe('a b');
    expect(oneLine('🌹'.repeat(30), 5)).toBe('🌹🌹🌹🌹…');
    expect(oneLine('x'.repeat(1e6), 5)).toBe('xxxx…');
  });

  it('closes the fence it leaves open, and no other', () => {
    expect(withFencesClosed('a\n~~~~\n```\nb')).toBe('a\n~~~~\n```\nb\n~~~~');
    for (const whole of ['a', '```\nb\n```', '```js\nb\n````', 'say ```this``` here', '```a``` b'])
      expect(withFencesClosed(whole)).toBe(whole);
  });
});
