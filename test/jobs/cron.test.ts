/** Cron lines: what is taken, and when they are due, also where the clocks change. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cronFault, lastSlot, nextSlot } from '../../src/jobs/plan.js';

const NOW = Date.UTC(2026, 0, 15, 12);
const slots = (line: string, zone: string, after: string, many: number) => {
  const found: string[] = [];
  for (let at: number | null = Date.parse(after); found.length < many; ) {
    at = nextSlot(line, zone, at);
    if (at === null) break;
    found.push(new Date(at).toISOString().slice(0, 16));
  }
  return found;
};

describe('a cron line', () => {
  it.each([
    '0 8 * * *',
    '* * * * *',
    '0 0 8 * * 1-5',
    '0 0 29 2 *',
    '0 9 L * *',
    '30 9 * * MON,THU',
    '  0   8 * * * ',
    '*/2 0 9 * * *',
    '* * * * * *',
    '*/30 * * * * *',
    '* 0-1 9 * * *',
    '0 9-17 * * 1-5',
  ])('%s is taken', (line) => expect(cronFault(line, 'Europe/Berlin', NOW)).toBeNull());

  it.each([
    ['0 0 30 2 *', /never comes/],
    ['0 0 31 4,6,9,11 *', /never comes/],
    ['* * * *', /5 fields .* has 4/],
    ['* * * * * * *', /has 7/],
    ['@daily', /has 1/],
    ['', /has 1/],
    ['61 * * * *', /is no cron line: Invalid value for minute: 61\.$/],
    ['a b c d e', /is no cron line/],
    ['*/0 * * * *', /is no cron line/],
    ['0 9 * * MON#6', /is no cron line/],
    [`0 9 * * ${'1,'.repeat(500_000)}1`, /at most 200 characters/],
  ])('%.40s is refused', (line, why) => expect(cronFault(line, 'Europe/Berlin', NOW)).toMatch(why));

  it('may name 29 February', () => {
    expect(slots('0 9 29 2 *', 'UTC', '2026-01-01T00:00Z', 2)).toEqual([
      '2028-02-29T09:00',
      '2032-02-29T09:00',
    ]);
  });
});

describe('daylight saving', () => {
  it.each([
    // Skipped: when the clocks go forward.
    ['30 2 * * *', 'Europe/Berlin', '2026-03-28T12:00Z', ['2026-03-29T01:00', '2026-03-30T00:30']],
    ['30 2 * * *', 'America/New_York', '2026-03-07T12:00Z', ['2026-03-08T07:00', '2026-03-09T06:30']],
    ['15 2 * * *', 'Australia/Lord_Howe', '2026-10-03T00:00Z', ['2026-10-03T15:30', '2026-10-04T15:15']],
    // Two times of day of which one is skipped come once then.
    ['0 2,3 * * *', 'Europe/Berlin', '2026-03-28T12:00Z', ['2026-03-29T01:00', '2026-03-30T00:00']],
    // Doubled: the first time.
    ['30 2 * * *', 'Europe/Berlin', '2026-10-24T12:00Z', ['2026-10-25T00:30', '2026-10-26T01:30']],
    ['30 1 * * *', 'America/New_York', '2026-10-31T12:00Z', ['2026-11-01T05:30', '2026-11-02T06:30']],
    ['45 1 * * *', 'Australia/Lord_Howe', '2026-04-04T00:00Z', ['2026-04-04T14:45', '2026-04-05T15:15']],
    ['0 2,3 * * *', 'Europe/Berlin', '2026-10-24T12:00Z', ['2026-10-25T00:00', '2026-10-25T02:00']],
    // What repeats goes on.
    ['*/30 * * * *', 'Europe/Berlin', '2026-03-29T00:15Z', ['2026-03-29T00:30', '2026-03-29T01:00']],
    [
      '*/30 * * * *',
      'Europe/Berlin',
      '2026-10-25T00:15Z',
      ['2026-10-25T00:30', '2026-10-25T01:00', '2026-10-25T01:30', '2026-10-25T02:00'],
    ],
  ])('%s in %s', (line, zone, after, expected) => {
    expect(slots(line, zone, after, expected.length)).toEqual(expected);
  });
});

it('the last slot up to a time is one, and the next is behind it', () => {
  const lines = ['30 2 * * *', '*/30 * * * *', '0 2,3 * * *', '15 1 * * *', '0 9 * * 1', '* * * * *'];
  const zones = ['Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe'];
  const time = fc.integer({ min: Date.UTC(2026, 0, 10) / 1000, max: Date.UTC(2027, 0, 10) / 1000 });
  fc.assert(
    fc.property(time, fc.constantFrom(...lines), fc.constantFrom(...zones), (seconds, line, zone) => {
      const now = seconds * 1000;
      const from = nextSlot(line, zone, now - 14 * 86_400_000) ?? 0;
      const last = lastSlot(line, zone, { from, now });
      expect(last).toBeLessThanOrEqual(now);
      expect(nextSlot(line, zone, last - 1000)).toBe(last);
      expect(nextSlot(line, zone, last)).toBeGreaterThan(now);
    }),
    { numRuns: 300 },
  );
  expect(lastSlot('0 9 * * *', 'UTC', { from: NOW + 1, now: NOW })).toBe(NOW + 1);
});
