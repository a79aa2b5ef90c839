import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createZone } from '../../src/core/dates.js';
import { datesIn } from '../../src/recall/question.js';
import { indexTerms, queryTerms } from '../../src/recall/terms.js';

const asked = (text: string) =>
  queryTerms(text, 50).map(({ text: term, begins }) => (begins ? `${term}*` : term));

describe('terms', () => {
  it.each([
    ['paints painted painting painter', 1],
    ['went going goes gone', 1],
    ['adopt adopted adoption adopting', 1],
    ['hobby hobbies', 1],
    ['Kids children child', 1],
    ['mum mother mom', 1],
    ['running runs ran', 1],
    ["Mary's mary MARY", 1],
    ['café cafe CAFÉ', 1],
    ['кошка кошки кошку', 1],
    ['المكتبة مكتبة', 1],
    ['ｆｕｌｌ full', 1],
    ['bank bond bean bone', 4],
    ['вишня вишней вишню', 1],
  ])('of "%s" are %i', (text, count) => {
    expect(new Set(indexTerms(text)).size).toBe(count);
  });

  it('hold no words that everybody says', () => {
    expect(indexTerms("What do you think? I'm not the one who'll do it")).toEqual(['think', 'one']);
  });

  it('of scripts without spaces overlap, and a single character stands for what begins with it', () => {
    expect(indexTerms('東京都')).toEqual(['東京', '京都', '都']);
    expect(asked('京都')).toEqual(['京都']);
    expect(asked('京')).toEqual(['京*']);
    expect(indexTerms('แมวดำ')).toContain('แมว');
    expect(asked('ดำ')[0]).toMatch(/^ดํ/);
  });

  it('never hold what the index of words would part or read', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 300 }), (text) => {
        for (const term of indexTerms(text)) expect(term).toMatch(/^[a-z0-9\u0080-\u{10ffff}]{1,40}$/u);
      }),
    );
  });

  it('of a question stand in the text that it quotes', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 60 }), (text) => {
        const there = indexTerms(text);
        for (const { text: term, begins } of queryTerms(text, 100)) {
          expect(there.some((one) => (begins ? one.startsWith(term) : one === term))).toBe(true);
        }
      }),
    );
  });
});

describe('dates of a question', () => {
  const zone = createZone('Asia/Tokyo');
  const now = Date.UTC(2026, 5, 15);
  const midnight = (year: number, month: number, day: number) =>
    Date.UTC(year, month - 1, day) - 9 * 3_600_000;
  it.each([
    ['on 3 May 2023', midnight(2023, 5, 3)],
    ['on May 3rd, 2023', midnight(2023, 5, 3)],
    ['on the 3rd of May 2023', midnight(2023, 5, 3)],
    ['on 2023-05-03', midnight(2023, 5, 3)],
    ['am 3.5.2023', midnight(2023, 5, 3)],
    ['2023年5月3日', midnight(2023, 5, 3)],
    ['on May 3', midnight(2026, 5, 3)],
    ['on 3 December', midnight(2025, 12, 3)],
    ['in May 2023', midnight(2023, 5, 20)],
    ['in May', midnight(2026, 5, 20)],
    ['in 2023', midnight(2023, 8, 1)],
    ['yesterday', now - 86_400_000],
  ])('%s', (text, at) => {
    const spans = datesIn(`what did we do ${text}?`, now, zone);
    expect(spans).toHaveLength(1);
    expect(spans.some(({ from, until }) => from <= at && at < until)).toBe(true);
    expect(spans.some(({ from, until }) => from <= at - 4e10 && at - 4e10 < until)).toBe(false);
  });
  it.each(['I may march', 'call 555 2023', '99.99.2023', '2023-99-99', 'the 31 of nothing', ''])(
    'none in "%s"',
    (text) => {
      for (const { from, until } of datesIn(text, now, zone)) expect(until).toBeGreaterThan(from);
      expect(datesIn('I may march', now, zone)).toEqual([]);
    },
  );
});
