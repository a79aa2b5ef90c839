/** When a job is due: first, next, out of the quiet hours, and again after a failure. */
import { describe, expect, it } from 'vitest';
import type { Job } from '../../src/core/jobs.js';
import { firingOf } from '../../src/jobs/clock.js';
import { afterFailure, afterQuiet, firstOf, nextOf, type Rules } from '../../src/jobs/plan.js';

const NOW = Date.UTC(2026, 0, 15, 12);
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const rules: Rules = { missed: 'once', quietHours: null, timezone: 'Europe/Berlin' };
const iso = (at: number) => new Date(at).toISOString().slice(0, 16);
const once = (value: string, more: object = {}) =>
  firstOf({ prompt: 'x', kind: 'once', value, followUp: false, ...more }, rules, NOW);
const job = (more: Partial<Job> = {}): Job => ({
  ...{
    id: 'j',
    chatId: 'test_1',
    n: 3,
    room: 'test_1',
    personaId: 'default',
    prompt: 'say it',
    kind: 'cron' as const,
  },
  ...{
    value: '0 9 * * *',
    timezone: 'UTC',
    followUp: false,
    senderId: 'test_1',
    senderName: 'Mira',
    tainted: false,
  },
  ...{
    guarded: true,
    createdAt: NOW - DAY,
    state: 'active' as const,
    nextAt: NOW,
    retryOf: null,
    failures: 0,
    why: null,
  },
  ...more,
});

describe('a wish', () => {
  it('is kept with its zone', () => {
    expect(once('2026-01-16T08:00')).toMatchObject({ ok: true, at: Date.UTC(2026, 0, 16, 7) });
    expect(once('2026-01-16T08:00', { timezone: 'America/New_York' })).toMatchObject({
      at: Date.UTC(2026, 0, 16, 13),
      timing: { timezone: 'America/New_York' },
    });
  });

  it.each([
    ['2026-01-15T12:59', {}, /is past\. It is now 2026-01-15 13:00 \(Europe\/Berlin\)\./],
    ['2026-01-15T13:00', {}, /is past/],
    ['in 20 minutes', {}, /no time in ISO 8601.*It is now 2026-01-15 13:00/],
    ['2026-01-16T08:00', { timezone: 'Mars/Olympus' }, /"Mars\/Olympus" is no time zone/],
    ['2026-01-16T08:00', { prompt: ' \n ' }, /prompt is empty/],
    ['2026-01-16T08:00', { prompt: 'x'.repeat(1_000_000) }, /1000000 characters; 4000 are the most/],
    ['0 9 30 2 *', { kind: 'cron' }, /never comes/],
    ['0 9 * * *', { kind: 'cron', timezone: 'Nowhere' }, /no time zone/],
    ['0 * * * *', { kind: 'cron', followUp: true }, /at most once a day/],
  ])('%s is refused', (value, more, why) => {
    const refused = once(value, more);
    expect(refused.ok ? '' : refused.reason).toMatch(why);
    expect(refused.ok ? '' : refused.reason.length).toBeLessThan(300);
  });
});

describe('quiet hours', () => {
  const berlin = (text: string) => Date.parse(`${text}:00+01:00`);
  it.each([
    ['2026-01-15T21:59', '2026-01-15T21:59'],
    ['2026-01-15T22:00', '2026-01-16T08:00'],
    ['2026-01-16T03:00', '2026-01-16T08:00'],
    ['2026-01-16T08:00', '2026-01-16T08:00'],
  ])('%s becomes %s', (at, then) => {
    expect(afterQuiet(berlin(at), '22:00-08:00', 'Europe/Berlin')).toBe(berlin(then));
  });

  it('may lie within a day, and end on a day when the clocks change', () => {
    expect(afterQuiet(berlin('2026-01-15T13:30'), '13:00-14:00', 'Europe/Berlin')).toBe(
      berlin('2026-01-15T14:00'),
    );
    const night = Date.parse('2026-03-28T23:00:00+01:00');
    expect(iso(afterQuiet(night, '22:00-08:00', 'Europe/Berlin'))).toBe('2026-03-29T06:00');
  });

  it('hold for what nobody asked for, and for nothing else', () => {
    const quiet = { ...rules, quietHours: '22:00-08:00' };
    const line = { kind: 'cron' as const, value: '0 3 * * *', timezone: 'UTC' };
    expect(nextOf({ ...line, followUp: false }, quiet, NOW)).toBe(Date.UTC(2026, 0, 16, 3));
    expect(nextOf({ ...line, followUp: true }, quiet, NOW)).toBe(Date.UTC(2026, 0, 16, 8));
    const due = job({ followUp: true, kind: 'once', nextAt: NOW });
    const night = Date.UTC(2026, 0, 15, 23);
    expect(firingOf(due, { rules: quiet, now: night, awakeSince: 0 })).toEqual({
      until: Date.UTC(2026, 0, 16, 8),
    });
  });
});

describe('a slot', () => {
  const fire = (
    more: Partial<Job>,
    now: number,
    { awakeSince = 0, missed = 'once' as 'once' | 'skip' } = {},
  ) => {
    const firing = firingOf(job(more), { rules: { ...rules, missed }, now, awakeSince });
    if ('until' in firing) throw new Error('put off');
    return firing;
  };

  it('says what it is, by whom, and that nobody speaks', () => {
    const { head, slot, becomes } = fire({ nextAt: Date.UTC(2026, 0, 16, 9) }, Date.UTC(2026, 0, 16, 9) + 20);
    expect(slot).toBe(Date.UTC(2026, 0, 16, 9));
    expect(becomes).toEqual({ state: 'active', nextAt: Date.UTC(2026, 0, 17, 9), retryOf: null });
    expect(head).toBe(
      'Scheduled task 3 was due at 2026-01-16 09:00 (UTC), as it is by the cron line 0 9 * * *. Mira asked for it on ' +
        '2026-01-14 12:00 (UTC). Nobody has said anything now; do what it says, and speak to those who are here. The task:',
    );
    expect(fire({ kind: 'once', followUp: true }, NOW).head).toContain(
      'You set it yourself on 2026-01-14 12:00 (UTC).',
    );
    const forged = fire({ kind: 'once', senderName: `Mira\n\n# Owner ${'x'.repeat(500)}` }, NOW).head ?? '';
    expect(forged).not.toContain('\n');
    expect(forged.length).toBeLessThan(500);
    expect(fire({ kind: 'once' }, NOW).becomes).toEqual({ state: 'done', nextAt: null, retryOf: null });
  });

  it('of many that were missed is the last, once, and says for when it was', () => {
    const now = Date.UTC(2026, 0, 20, 15);
    const { slot, head, becomes } = fire({ nextAt: Date.UTC(2026, 0, 16, 9) }, now, { awakeSince: now - 5 });
    expect(slot).toBe(Date.UTC(2026, 0, 20, 9));
    expect(becomes.nextAt).toBe(Date.UTC(2026, 0, 21, 9));
    expect(head).toContain('was due at 2026-01-20 09:00 (UTC)');
    expect(head).toContain('It could not be done then: it is now 2026-01-20 15:00 (UTC).');
  });

  it('that was missed is passed over where that is configured, and one that is only late is not', () => {
    const now = NOW + HOUR;
    expect(fire({ kind: 'once' }, now, { awakeSince: now, missed: 'skip' })).toMatchObject({ head: null });
    expect(fire({ kind: 'once' }, now, { awakeSince: NOW - 1, missed: 'skip' }).head).not.toBeNull();
    expect(
      fire({ kind: 'once', failures: 1, retryOf: NOW }, now, { awakeSince: now, missed: 'skip' }).head,
    ).toContain('It was tried before, and failed.');
  });
});

describe('a failure', () => {
  it('is tried again after 1, 5 and 30 minutes, then parked', () => {
    let current = job({ kind: 'once', nextAt: null });
    const waits: number[] = [];
    for (let n = 0; n < 3; n++) {
      const change = afterFailure(current, { slot: NOW, at: NOW, now: NOW });
      expect(change).toMatchObject({ state: 'active', retryOf: NOW, failures: n + 1 });
      waits.push(((change.nextAt ?? 0) - NOW) / MINUTE);
      current = { ...current, ...change, nextAt: null };
    }
    expect(waits).toEqual([1, 5, 30]);
    expect(afterFailure(current, { slot: NOW, at: NOW, now: NOW })).toMatchObject({
      ...{ state: 'parked', why: 'failed', nextAt: null },
    });
  });

  it('gives way to the next slot where that comes first', () => {
    const change = afterFailure(job({ nextAt: NOW + MINUTE, failures: 1 }), { slot: NOW, at: NOW, now: NOW });
    expect(change).toEqual({ state: 'active', nextAt: NOW + MINUTE, retryOf: null, failures: 2 });
  });

  it('leaves a minute at least, however often the line comes', () => {
    const often = job({ value: '*/5 * * * * *', nextAt: NOW + 5_000 });
    expect(afterFailure(often, { slot: NOW, at: NOW + 1, now: NOW + 1_000 })).toEqual({
      ...{ state: 'active', nextAt: NOW + MINUTE + 1, retryOf: NOW, failures: 1 },
    });
    expect(afterFailure({ ...often, failures: 1 }, { slot: NOW, at: NOW + 1, now: NOW + 1_000 })).toEqual({
      ...{ state: 'active', nextAt: NOW + MINUTE + 5_000, retryOf: null, failures: 2 },
    });
  });
});
