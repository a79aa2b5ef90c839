/** When a server's count shows that it read only a part of a request. */
import { describe, expect, test } from 'vitest';
import { createCutWatch, windowBehind } from '../../src/models/token-counts.js';

const request = (tokens: number, input: number, cached = 0) => ({
  size: { estimated: tokens, least: Math.floor(tokens * 0.6), uncertain: 0 },
  counts: [input, input + cached],
});

describe('a server that counts', () => {
  test('less than the least that a request can be has cut it', () => {
    const { isCut } = createCutWatch();
    expect(isCut('a', { ...request(10_000, 4_096), isOneChat: false })).toBe(true);
    expect(isCut('a', { ...request(10_000, 6_100), isOneChat: false })).toBe(false);
  });

  test('next to nothing, or of a short request, shows nothing', () => {
    const { isCut } = createCutWatch();
    expect(isCut('a', { ...request(10_000, 400), isOneChat: false })).toBe(false);
    expect(isCut('a', { ...request(1_000, 550), isOneChat: false })).toBe(false);
  });

  test('from its cache now and then, with it or without, has cut nothing', () => {
    const { isCut } = createCutWatch();
    const counted = [
      [6_000, 5_000],
      [6_900, 0],
      [7_900, 6_800],
      [8_900, 0],
    ] as const;
    counted.forEach(([input, cached], n) => {
      expect(isCut('with', { ...request(6_000 + n * 1_000, input, cached), isOneChat: true })).toBe(false);
    });
    const uncached = [
      [6_000, 0],
      [900, 6_000],
      [8_000, 0],
      [1_000, 8_000],
    ] as const;
    uncached.forEach(([input, cached], n) => {
      expect(isCut('without', { ...request(6_000 + n * 1_000, input, cached), isOneChat: true })).toBe(false);
    });
  });

  test('the same while a conversation grows has cut it; after a compaction it begins anew', () => {
    const { isCut } = createCutWatch();
    expect(isCut('a', { ...request(8_000, 8_000), isOneChat: true })).toBe(false);
    expect(isCut('a', { ...request(9_000, 8_010), isOneChat: true })).toBe(true);
    expect(isCut('a', { ...request(3_000, 3_000), isOneChat: true })).toBe(false);
    expect(isCut('b', { ...request(9_000, 8_010), isOneChat: true })).toBe(false);
  });
});

describe('the window behind a count', () => {
  test.each([
    [2_050, 4_096],
    [1_026, 2_048],
    [4_099, 8_192],
    [3_000, 3_000],
    [4_096, 4_096],
    [5_000, 5_000],
  ])('%i is %i', (counted, window) => {
    expect(windowBehind(counted)).toBe(window);
  });
});
