import { describe, expect, it } from 'vitest';
import { cut, hasMarker } from '../../src/core/cut.js';

describe('cut', () => {
  it('leaves what fits, trimmed', () => {
    expect(cut('\n 12345 \n', 5, 'x-max-chars')).toEqual({ text: '12345', kept: 5 });
  });

  it('says which limit cut', () => {
    expect(cut('  123456', 5, 'memory-max-chars')).toEqual({
      text: '12345\n\n<<truncated due to memory-max-chars=5>>',
      kept: 5,
    });
  });

  it('never halves a surrogate pair', () => {
    expect(cut('1234😀6', 5, 'x').text).toBe('1234\n\n<<truncated due to x=5>>');
    expect(cut('123😀6', 5, 'x').text).toBe('123😀\n\n<<truncated due to x=5>>');
  });
});

describe('hasMarker', () => {
  it('knows every marker that cutting leaves', () => {
    for (const limit of ['memory-max-chars', 'daily-per-day-max-chars', 'daily-max-chars']) {
      expect(hasMarker(cut('abc', 2, limit).text)).toBe(true);
    }
    expect(hasMarker('I was truncated due to rain')).toBe(false);
  });
});
