import { describe, expect, it } from 'vitest';
import { isDate } from '../../src/core/daily-log.js';
import { dayIn } from '../../src/tools/results.js';

describe('dayIn', () => {
  it('is the day of the zone', () => {
    const now = Date.parse('2026-12-31T23:30:00Z');
    expect(dayIn('UTC', now)).toBe('2026-12-31');
    expect(dayIn('Asia/Tokyo', now)).toBe('2027-01-01');
    expect(dayIn('America/Los_Angeles', now)).toBe('2026-12-31');
  });
});

describe('isDate', () => {
  it('takes the days that the calendar has', () => {
    expect(['2024-02-29', '2026-01-31'].every(isDate)).toBe(true);
    expect(['2026-02-29', '2026-13-01', '2026-1-1', '2026-01-01x', ''].some(isDate)).toBe(false);
  });
});
