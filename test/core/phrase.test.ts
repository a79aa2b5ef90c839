import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FORGOTTEN, phraseOf } from '../../src/core/phrase.js';

describe('a phrase', () => {
  it('is found whatever the case, the white space and the form of letters', () => {
    const phrase = phraseOf('  Zoë  lives in\nGraz ');
    expect(phrase.text).toBe('Zoë  lives in\nGraz');
    for (const words of [
      'zoë lives in graz',
      'So ZOË LIVES\u00a0IN\r\n\tGRAZ.',
      'zoe\u0308 lives\u2028in\u0085Graz',
      'Zoe\u0308\n\nlives in Graz',
    ]) {
      expect(phrase.isIn(words), words).toBe(true);
    }
    for (const words of ['zoe lives in graz', 'zoë livesin graz', 'zoë lives in', '']) {
      expect(phrase.isIn(words), words).toBe(false);
      expect(phrase.rangesIn(words)).toEqual([]);
    }
  });

  it('means its characters, not a pattern', () => {
    const odd = '^a.b* (c|d) [e] {2} $x \\ /y/ - # ~ 😀';
    expect(phraseOf(odd).isIn(`so ${odd.toUpperCase()}!`)).toBe(true);
    expect(phraseOf('a.b').isIn('axb')).toBe(false);
    expect(phraseOf('$&').replacedIn('1 $& 2', '$1')).toBe('1 $1 2');
  });

  it('needs words', () => {
    for (const text of ['', ' \n', '\u0085\u00a0']) expect(() => phraseOf(text)).toThrow(RangeError);
  });

  it('stays found by one that asks again and again', () => {
    const phrase = phraseOf('tea');
    expect([1, 2, 3].map(() => phrase.isIn('some tea'))).toEqual([true, true, true]);
  });
});

describe('replacing', () => {
  it('leaves every other character in the form it had', () => {
    const words = 'Zoe\u0308 and \u1112\u1161\u11ab, \u212b: my  SECRET\nword. e\u0301';
    expect(phraseOf('my secret word').replacedIn(words, FORGOTTEN)).toBe(
      'Zoe\u0308 and \u1112\u1161\u11ab, \u212b: [forgotten]. e\u0301',
    );
    expect(phraseOf('한').replacedIn(words, '-')).toBe('Zoe\u0308 and -, \u212b: my  SECRET\nword. e\u0301');
    expect(phraseOf('zoë').replacedIn(words, '-').startsWith('- and ')).toBe(true);
    expect(phraseOf('nothing').replacedIn(words, '-')).toBe(words);
  });

  it('takes the whole letter where the phrase is a part of one', () => {
    expect(phraseOf('\u0915').replacedIn('\u0958x', '-')).toBe('-x');
  });

  it('is done after once, also where the phrase looks like what stands for it', () => {
    for (const text of ['forgotten', 'e', '[', '[forgotten]', 'n] a', 'a [', 'a [forgotten]', 'a']) {
      const phrase = phraseOf(text);
      const once = phrase.replacedIn('I have forgotten the n] a a [b', FORGOTTEN);
      expect(phrase.replacedIn(once, FORGOTTEN)).toBe(once);
      expect(phrase.isIn(once)).toBe(false);
    }
  });

  it('reads megabytes in a moment', () => {
    const before = performance.now();
    const phrase = phraseOf('very secret');
    const plain = 'very  long text, nothing to see. '.repeat(300_000);
    expect(phrase.isIn(plain)).toBe(false);
    const decomposed = `${'e\u0301 very long '.repeat(200_000)}very secret`;
    expect(phrase.rangesIn(decomposed)).toEqual([{ start: decomposed.length - 11, end: decomposed.length }]);
    expect(phrase.isIn(`very${' '.repeat(1_000_000)}`)).toBe(false);
    expect(performance.now() - before).toBeLessThan(5_000);
  });
});

describe('laws', () => {
  const letter = fc.constantFrom(
    'a',
    'A',
    'b',
    ' ',
    '\n',
    'e',
    '\u0301',
    '\u0323',
    'é',
    '\u1112',
    '\u1161',
    '[',
    '\ud800',
  );
  const text = fc.oneof(
    fc.array(letter, { maxLength: 12 }).map((all) => all.join('')),
    fc.string({ unit: 'binary' }),
  );
  const wanted = fc.oneof(
    fc.array(letter, { maxLength: 3 }).map((all) => all.join('')),
    fc.string({ maxLength: 2 }),
  );

  it('what is replaced is gone, and what stands between the places is as it was', () => {
    fc.assert(
      fc.property(
        text,
        wanted.filter((words) => /[^\s\u0085]/u.test(words)),
        (words, looked) => {
          const phrase = phraseOf(looked);
          const places = phrase.rangesIn(words);
          expect(places.length > 0).toBe(phrase.isIn(words));
          const replaced = phrase.replacedIn(words, FORGOTTEN);
          expect(phrase.isIn(replaced)).toBe(false);
          const kept: string[] = [];
          let done = 0;
          for (const { start, end } of places) {
            expect(start).toBeGreaterThanOrEqual(done);
            expect(end).toBeGreaterThan(start);
            kept.push(words.slice(done, start));
            done = end;
          }
          kept.push(words.slice(done));
          expect(replaced).toBe(kept.join(FORGOTTEN));
        },
      ),
      { numRuns: 5000 },
    );
  });

  it('a text holds itself, in any case and form', () => {
    fc.assert(
      fc.property(
        text.filter((words) => /[^\s\u0085]/u.test(words) && !/\p{Cs}/u.test(words)),
        (words) => {
          if (words.includes(FORGOTTEN)) return;
          expect(phraseOf(words).isIn(`- ${words.normalize('NFD')} -`)).toBe(true);
        },
      ),
      { numRuns: 2000 },
    );
  });
});
