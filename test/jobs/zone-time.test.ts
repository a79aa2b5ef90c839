/** ISO times in zones: offsets, and the hours that daylight saving skips and doubles. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isZone } from '../../src/core/dates.js';
import { clockOf, instantOf, timeIn } from '../../src/jobs/plan.js';

const at = (text: string, zone: string) => {
  const found = timeIn(text, zone);
  return found === null ? null : new Date(found).toISOString().replace('.000Z', 'Z');
};

describe('an ISO time', () => {
  it.each([
    ['2026-01-31T08:00', 'Europe/Berlin', '2026-01-31T07:00:00Z'],
    ['2026-07-31 08:00:30', 'Europe/Berlin', '2026-07-31T06:00:30Z'],
    ['2026-01-31T08:00Z', 'Europe/Berlin', '2026-01-31T08:00:00Z'],
    ['2026-01-31t08:00z', 'Europe/Berlin', '2026-01-31T08:00:00Z'],
    ['2026-01-31T08:00+05:45', 'UTC', '2026-01-31T02:15:00Z'],
    ['2026-01-31T08:00-0330', 'UTC', '2026-01-31T11:30:00Z'],
    ['2026-01-31T08:00+14', 'UTC', '2026-01-30T18:00:00Z'],
    ['2026-01-31T08:00:59.123+01:00', 'UTC', '2026-01-31T07:00:59Z'],
    ['2028-02-29T08:00', 'UTC', '2028-02-29T08:00:00Z'],
    [' 2026-01-31T08:00 ', 'UTC', '2026-01-31T08:00:00Z'],
  ])('%s in %s is %s', (text, zone, utc) => expect(at(text, zone)).toBe(utc));

  it.each([
    '2026-02-29T08:00',
    '2026-02-30T08:00',
    '2026-13-01T08:00',
    '2026-01-31T24:00',
    '2026-01-31T25:00',
    '2026-01-31T08:60',
    '2026-01-31T08:00+25:00',
    '2026-01-31T08:00+14:30',
    '2026-01-31T08:00+01:99',
    '2026-01-31',
    '08:00',
    'tomorrow',
    'in 20 minutes',
    '',
    '2026-01-31T08:00 Europe/Berlin',
    '1769850000',
    '9'.repeat(100_000),
  ])('%.40s is none', (text) => expect(at(text, 'Europe/Berlin')).toBeNull());
});

describe('daylight saving', () => {
  it.each([
    // Skipped: as much later as is skipped.
    ['2026-03-29T02:30', 'Europe/Berlin', '2026-03-29T01:30:00Z'],
    ['2026-03-08T02:30', 'America/New_York', '2026-03-08T07:30:00Z'],
    ['2026-10-04T02:15', 'Australia/Lord_Howe', '2026-10-03T15:45:00Z'],
    // Doubled: the first.
    ['2026-10-25T02:30', 'Europe/Berlin', '2026-10-25T00:30:00Z'],
    ['2026-11-01T01:30', 'America/New_York', '2026-11-01T05:30:00Z'],
    ['2026-04-05T01:45', 'Australia/Lord_Howe', '2026-04-04T14:45:00Z'],
    // The edges.
    ['2026-03-29T01:59:59', 'Europe/Berlin', '2026-03-29T00:59:59Z'],
    ['2026-03-29T03:00', 'Europe/Berlin', '2026-03-29T01:00:00Z'],
    ['2026-10-25T03:00', 'Europe/Berlin', '2026-10-25T02:00:00Z'],
  ])('%s in %s is %s', (text, zone, utc) => expect(at(text, zone)).toBe(utc));

  it('comes back to the same clock everywhere, but for what is skipped', () => {
    const zones = [
      'Europe/Berlin',
      'America/New_York',
      'Australia/Lord_Howe',
      'Asia/Kathmandu',
      'Pacific/Apia',
      'UTC',
    ];
    const minute = fc.integer({ min: 29_000_000, max: 31_000_000 }).map((n) => n * 60_000);
    fc.assert(
      fc.property(minute, fc.constantFrom(...zones), (instant, zone) => {
        const showing = clockOf(zone);
        const local = showing(instant);
        const found = instantOf(local, zone);
        expect(showing(found)).toBe(local);
        expect(found).toBeLessThanOrEqual(instant);
      }),
      { numRuns: 300 },
    );
  });
});

it.each([
  ['Europe/Berlin', true],
  ['UTC', true],
  ['Mars/Olympus', false],
  ['+02:00', false],
  ['', false],
  ['Europe/Berlin; drop table', false],
])('%s is a zone: %s', (name, is) => expect(isZone(name)).toBe(is));
