import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { endOf, excerptsFor } from '../../src/recall/search.js';

const excerptOf = (text: string, question: string) => excerptsFor(question)(text);
const filler = 'Nothing of that kind was said on this day by anybody. '.repeat(40);

describe('what is shown of a long text', () => {
  it('is where the words of the question stand together', () => {
    const text = `The boat was blue. ${filler}We called the boat Albatross, after the old ferry. ${filler}`;
    const excerpt = excerptOf(text, 'What is the boat called, like the ferry?') ?? '';
    expect(excerpt).toContain('We called the boat Albatross, after the old ferry.');
    expect(excerpt.length).toBeLessThan(610);
    expect(excerpt).toMatch(/^… \S.*\S …$/);
  });

  it('is the beginning if none of them is in it', () => {
    expect(excerptOf(filler, 'Albatross?')).toMatch(/^Nothing of that kind/);
  });

  it('is all of a short one', () => {
    expect(excerptOf('We called the boat Albatross.', 'boat')).toBeNull();
    expect(endOf('What shall we call the boat?')).toBeNull();
  });

  it('is the end of a long question', () => {
    const end = endOf(`${filler}What shall we call the boat?`) ?? '';
    expect(end).toMatch(/What shall we call the boat\?$/);
    expect(end.length).toBeLessThan(310);
  });

  it('is a part of it, whatever it is and whatever is asked, and no half of a character', () => {
    const long = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 }).map((text) => text.repeat(700));
    fc.assert(
      fc.property(long, fc.string({ unit: 'grapheme' }), (text, question) => {
        for (const shown of [excerptOf(text, question), endOf(text)]) {
          if (shown === null) continue;
          expect(text).toContain(shown.replace(/^… /, '').replace(/ …$/, ''));
          expect(shown).not.toMatch(/\p{Cs}/u);
          expect(shown.length).toBeLessThan(610);
        }
      }),
      { numRuns: 40 },
    );
  });

  it('is found in linear time', () => {
    for (const sign of ['a', ' ', '狐', '?', 'a ', '"', '\u0301']) {
      const from = performance.now();
      excerptOf(sign.repeat(100_000), 'a 狐 fox');
      endOf(sign.repeat(100_000));
      expect(performance.now() - from).toBeLessThan(1_000);
    }
  });
});
