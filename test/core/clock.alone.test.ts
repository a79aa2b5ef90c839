/** The system's clock beyond what Node's own timers hold. The timers are faked as Node has them: too long a one fires at once. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { systemClock } from '../../src/core/clock.js';

const DAY_MS = 86_400_000;
/** What a flood of a platform or a configuration may ask for. */
const LONG = [2 ** 31 - 1, 2 ** 31, 2 ** 32, 30 * DAY_MS, 400 * DAY_MS, 1e13];

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

it.each(LONG)('waits %d ms, not less', (ms) => {
  let rang = 0;
  systemClock.after(ms, () => rang++);
  // The faked clock walks over every timer on the way.
  vi.advanceTimersByTime(ms - 1);
  expect(rang).toBe(0);
  vi.advanceTimersByTime(1);
  expect(rang).toBe(1);
  vi.advanceTimersByTime(ms);
  expect(rang).toBe(1);
});

it.each(LONG)('sleeps %d ms, or until it is woken', async (ms) => {
  let woke = 0;
  const signal = new AbortController();
  const whole = systemClock.sleep(ms).then(() => woke++);
  const broken = systemClock.sleep(ms, signal.signal).then(() => woke++);
  await vi.advanceTimersByTimeAsync(ms - 1);
  expect(woke).toBe(0);
  signal.abort();
  await broken;
  expect(woke).toBe(1);
  await vi.advanceTimersByTimeAsync(1);
  await whole;
  expect(vi.getTimerCount()).toBe(0);
});

it('never rings when it is asked to wait for ever, and can be cancelled in any piece', () => {
  let rang = 0;
  const cancel = systemClock.after(Number.POSITIVE_INFINITY, () => rang++);
  vi.advanceTimersByTime(1_000 * DAY_MS);
  expect([rang, vi.getTimerCount()]).toEqual([0, 1]);
  cancel();
  expect(vi.getTimerCount()).toBe(0);
});
