/** How far the vectors of a scope are believed. */
import { expect, it } from 'vitest';
import { trustAfter } from '../../src/recall/rank.js';

it('is half at first, whole for a model that agrees with the words, and none for one that does not', () => {
  expect(trustAfter({ questions: 0, sum: 0 })).toBe(0.5);
  expect(trustAfter({ questions: 20, sum: 20 * 0.8 })).toBe(1);
  expect(trustAfter({ questions: 200, sum: 0 })).toBeLessThan(0.02);
  expect(trustAfter({ questions: 20, sum: -10 })).toBe(0);
});
