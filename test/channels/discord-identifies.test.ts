/** How many sessions a day are begun at most, whatever ends the process. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { countIdentify, identifyPauseMs } from '../../src/channels/discord/identifies.js';
import type { ChannelState } from '../../src/core/channel.js';
import type { Clock } from '../../src/core/clock.js';
import { quietLog } from '../harness/quiet.js';

const DAY_MS = 86_400_000;

function memory(): ChannelState {
  const kept = new Map<string, string>();
  return {
    get: async (names) => new Map([...kept].filter(([name]) => names.includes(name))),
    async set(values) {
      for (const [name, value] of values) value === null ? kept.delete(name) : kept.set(name, value);
    },
    clear: async () => kept.clear(),
  };
}

/** Sleeping takes no time of ours; a sleep that the end of the process cuts off ends then. */
function travelling(start: number) {
  let now = start;
  let dies = Number.POSITIVE_INFINITY;
  const clock: Clock & { live(ms: number): AbortSignal; pass(ms: number): void } = {
    now: () => now,
    async sleep(ms) {
      const until = now + Math.max(0, ms);
      if (until >= dies) over.abort();
      now = Math.min(until, dies);
    },
    after: () => () => {},
    live(ms) {
      dies = now + ms;
      over = new AbortController();
      return over.signal;
    },
    pass(ms) {
      now += ms;
    },
  };
  let over = new AbortController();
  return clock;
}

async function begin(clock: Clock, state: ChannelState, signal: AbortSignal): Promise<void> {
  const host = { clock, log: quietLog, state };
  await clock.sleep(await identifyPauseMs(host), signal);
  if (!signal.aborted) await countIdentify(host);
}

test('a supervisor that starts it again at once, all day long: never near the thousand of Discord', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 3_000, max: 600_000 }),
      fc.integer({ min: 3_000, max: 30_000 }),
      async (livesMs, pauseMs) => {
        const state = memory();
        const clock = travelling(Date.UTC(2026, 5, 1));
        const begun: number[] = [];
        while (clock.now() < Date.UTC(2026, 5, 2)) {
          const signal = clock.live(livesMs);
          // As a process does whose sessions never last.
          while (!signal.aborted) {
            await begin(clock, state, signal);
            if (!signal.aborted) begun.push(clock.now());
            if (!signal.aborted) await clock.sleep(1_000);
          }
          clock.pass(pauseMs);
        }
        expect(begun.filter((at) => at < Date.UTC(2026, 5, 1) + DAY_MS).length).toBeLessThan(150);
        expect(begun.length).toBeGreaterThan(0);
      },
    ),
    { numRuns: 8 },
  );
});

test('one that is begun now and then waits for nothing', async () => {
  const clock = travelling(Date.UTC(2026, 5, 1));
  const state = memory();
  for (let hour = 0; hour < 24; hour += 1) {
    const before = clock.now();
    await begin(clock, state, clock.live(DAY_MS));
    expect(clock.now()).toBe(before);
    clock.pass(3_600_000);
  }
});

test('a clock that ran ahead by a year holds nothing back', async () => {
  const state = memory();
  const ahead = travelling(Date.UTC(2027, 5, 1));
  for (let turn = 0; turn < 60; turn += 1) {
    await begin(ahead, state, ahead.live(DAY_MS));
  }
  const clock = travelling(Date.UTC(2026, 5, 1));
  await begin(clock, state, clock.live(DAY_MS));
  expect(clock.now()).toBe(Date.UTC(2026, 5, 1));
});

test('of several shards, each bucket waits for itself, and all count', async () => {
  const state = memory();
  const clock = travelling(Date.UTC(2026, 5, 1));
  const host = { clock, log: quietLog, state };
  const start = (shard: number) => ({ shard, shards: 4, buckets: 2, total: 1_000 });
  await countIdentify(host, start(0));
  expect(await identifyPauseMs(host, start(1))).toBe(0);
  expect([await identifyPauseMs(host, start(2)), await identifyPauseMs(host, start(0))]).toEqual([
    6_000, 6_000,
  ]);
  for (let turn = 1; turn < 200; turn += 1) {
    clock.pass(DAY_MS / 400);
    await countIdentify(host, start(turn % 4));
  }
  expect(await identifyPauseMs(host, start(1))).toBe(15 * 60_000);
  expect(Object.keys(Object.fromEntries(await state.get(['identifies', 'identifies:3'])))).toEqual([
    'identifies:3',
  ]);
});

test('shards that begin sessions again and again all day long stay far below the thousand', async () => {
  const state = memory();
  const clock = travelling(Date.UTC(2026, 5, 1));
  const host = { clock, log: quietLog, state };
  let begun = 0;
  for (let shard = 0; clock.now() < Date.UTC(2026, 5, 2); shard = (shard + 1) % 16) {
    const start = { shard, shards: 16, buckets: 1, total: 1_000 };
    await clock.sleep(await identifyPauseMs(host, start), clock.live(DAY_MS));
    await countIdentify(host, start);
    begun += 1;
  }
  expect(begun).toBeGreaterThan(16);
  expect(begun).toBeLessThan(650);
});
