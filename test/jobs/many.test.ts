/** 10,000 jobs that are due at once: in small steps, each once, so that messages find their way between them. */
import Database from 'better-sqlite3';
import { afterEach, expect, it } from 'vitest';
import type { Store } from '../../src/core/store.js';
import { type ClockParts, createAlarm, look } from '../../src/jobs/clock.js';
import { manualClock } from '../fakes/clock.js';
import { quietMetrics } from '../harness/quiet.js';
import { openHere, type Place, silentLog } from '../store/place.js';

const NOW = Date.UTC(2026, 0, 15, 12);
const MANY = 10_000;

let place: Place;
afterEach(() => place.remove());

/** Written at once, for one by one takes its time. */
function fill(file: string, nextAt: number): void {
  const raw = new Database(file);
  const chat = raw.prepare(
    `insert into chat (id, channel, account, address, kind, title) values (?, 'test', 'bot', ?, 'direct', 'x')`,
  );
  const job =
    raw.prepare(`insert into job (id, chat_id, n, room_id, persona_id, prompt, kind, value, timezone, follow_up,
    sender_id, created_at, state, next_at) values (?, ?, 1, ?, 'default', 'x', 'cron', '0 12 * * *', 'UTC', 0, '', 0,
    'active', ?)`);
  raw.transaction(() => {
    for (let n = 0; n < MANY; n++) {
      chat.run(`test_${n}`, String(n));
      job.run(`job${n}`, `test_${n}`, `test_${n}`, nextAt);
    }
  })();
  raw.close();
}

function partsOn(store: Store, woken: string[]): ClockParts {
  return {
    ...{ store, clock: manualClock(NOW), log: silentLog, metrics: quietMetrics, alarm: createAlarm() },
    rooms: { fired: async (rooms) => void woken.push(...rooms), say: async () => {} },
    door: { admits: async () => true },
    personas: { get: async () => ({}) as never },
    channels: ['test'],
    rules: { missed: 'once', quietHours: null, timezone: 'UTC' },
  };
}

it('fires 10,000 in small steps, each once, and half of the rooms at a time', async () => {
  place = await openHere();
  const store = await place.open();
  fill(place.file, NOW);
  const woken: string[] = [];
  const parts = partsOn(store, woken);
  const raw = new Database(place.file, { timeout: 5_000 });
  // As if each had been answered.
  const answered = raw.prepare(`update message set state = 'done' where state = 'waiting'`);
  const signal = new AbortController().signal;

  const pause = [await look(parts, 0, signal), await look(parts, 0, signal), await look(parts, 0, signal)];
  expect(woken).toHaveLength(50);
  expect(await look(parts, 0, signal)).toBe(500);
  expect(woken, 'no more at a time').toHaveLength(50);
  expect(pause).toEqual([100, 100, 100]);

  let longest = 0;
  for (let steps = 0; woken.length < MANY && steps < 1_000; steps++) {
    answered.run();
    let before = performance.now();
    const watch = setInterval(() => {
      longest = Math.max(longest, performance.now() - before);
      before = performance.now();
    }, 1);
    await look(parts, 0, signal);
    clearInterval(watch);
  }
  raw.close();
  expect(new Set(woken).size).toBe(MANY);
  expect(woken).toHaveLength(MANY);
  // What a message would have had to wait, with room for a busy machine; a single step with all takes seconds.
  expect(longest).toBeLessThan(250);
  expect(await store.nextJobAt(['test'])).toBe(NOW + 86_400_000);
}, 60_000);

it('costs nothing measurable while nothing is due', async () => {
  place = await openHere();
  const store = await place.open();
  fill(place.file, NOW + 30 * 86_400_000);
  const parts = partsOn(store, []);
  const signal = new AbortController().signal;
  await look(parts, 0, signal);
  const began = performance.now();
  for (let n = 0; n < 20; n++) expect(await look(parts, 0, signal)).toBe(60_000);
  expect((performance.now() - began) / 20, 'of a minute, ms').toBeLessThan(20);
});
