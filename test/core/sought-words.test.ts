import { describe, expect, it } from 'vitest';
import { type SoughtWords, wantedIn } from '../../src/core/phrase.js';

function wanted(query: string): SoughtWords {
  const found = wantedIn(query);
  if (found === null) throw new Error(`no words in ${query}`);
  return found;
}

describe('words to find', () => {
  it('are found anywhere, in any order, whatever the case', () => {
    expect(wanted('morning good').isIn('A GOOD Morning')).toBe(true);
    expect(wanted('orn').isIn('a good morning')).toBe(true);
    expect(wanted('good evening').isIn('a good morning')).toBe(false);
  });

  it.each([
    ['cafe', 'Café'],
    ['CAFÉ', 'cafe'],
    ['café', 'cafe\u0301'],
    ['strasse', 'Straße'],
    ['ΟΔΟΣ', 'οδός'],
    ['ёлка', 'елка'],
    ['abc', 'ａｂｃ'],
    ['שלום', 'שָׁלוֹם'],
    ['محمد', 'مُحَمَّد'],
    ['東京', '明日は東京'],
    ['が', 'か\u3099'],
    ['한국', '한국'.normalize('NFD')],
  ])('%s is in %s', (query, text) => {
    expect(wanted(query).isIn(text)).toBe(true);
  });

  it('are themselves: no pattern, no wildcard', () => {
    expect(wanted('a.c').isIn('abc')).toBe(false);
    expect(wanted('100%').isIn('100 per cent')).toBe(false);
    expect(wanted('(+*').isIn('x (+* y')).toBe(true);
  });

  it('are none in white space', () => {
    expect(wantedIn(' \n\t\u00a0')).toBeNull();
    expect(wantedIn('\u0301')).toBeNull();
  });
});

describe('an excerpt', () => {
  it('is the text itself if that is short', () => {
    expect(wanted('b').excerptOf('a\n\n b \u0007 c', 50)).toBe('a b c');
  });

  it('is around the first word that occurs, in one line', () => {
    const text = `${'x'.repeat(500)} needle ${'y'.repeat(500)}`;
    const excerpt = wanted('needle').excerptOf(text, 40);
    expect(excerpt).toMatch(/^…x+ needle y+…$/);
    expect(excerpt.length).toBeLessThan(50);
  });

  it('finds the place in the text as written, also behind letters that fold to more or fewer', () => {
    const text = `${'ß'.repeat(400)}${'e\u0301'.repeat(400)} Nädel ${'y'.repeat(400)}`;
    expect(wanted('nadel').excerptOf(text, 40)).toContain('Nädel');
  });

  it('cuts no sign in half', () => {
    for (let around = 30; around < 36; around++) {
      const excerpt = wanted('needle').excerptOf(`${'🙂'.repeat(50)}needle${'🙃'.repeat(50)}`, around);
      expect(excerpt.isWellFormed()).toBe(true);
      expect(excerpt).toContain('needle');
    }
  });
});
