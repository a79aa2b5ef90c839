/** 10,000 jobs that are due at once: they fire in small steps, each once, and messages find their way between them. */
import Database from 'better-sqlite3';
import { afterEach, expect, it } from 'vitest';
import type { Store } from '../../src/core/store.js';
import { type ClockParts, createAlarm, look } from '../../src/jobs/clock.js';
import { manualClock } from '../fakes/clock.js';
import { quietMetrics } from '../harness/quiet.js';
import { openMade, type Place, silentLog } from '../store/place.js';

const NOW = Date.UTC(2026, 0, 15, 12);
const MANY = 10_000;
/** How many of them are watched as they fire. */
const STRETCH = 1_500;

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
  place = await openMade();
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

  const times: number[] = [];
  while (woken.length < STRETCH && times.length < STRETCH) {
    answered.run();
    const [before, fired] = [performance.now(), woken.length];
    await look(parts, 0, signal);
    times.push(performance.now() - before);
    expect(woken.length - fired, 'in a step').toBeLessThanOrEqual(20);
  }
  raw.close();
  expect(new Set(woken).size, 'each once').toBe(woken.length);
  expect(woken.length).toBeGreaterThanOrEqual(STRETCH);
  const { due } = await store.dueJobs({ channels: ['test'], now: NOW, most: 100 });
  expect(due, 'the others follow').toHaveLength(100);
  // What a message has to wait for; all at once takes seconds. The median, as others work on this machine, too.
  expect(times.sort((a, b) => a - b)[times.length >> 1]).toBeLessThan(400);
}, 60_000);

it('costs nothing measurable while nothing is due', async () => {
  place = await openMade();
  const store = await place.open();
  fill(place.file, NOW + 30 * 86_400_000);
  const parts = partsOn(store, []);
  const signal = new AbortController().signal;
  await look(parts, 0, signal);
  const times: number[] = [];
  for (let n = 0; n < 51; n++) {
    const before = performance.now();
    expect(await look(parts, 0, signal)).toBe(60_000);
    times.push(performance.now() - before);
  }
  expect(times.sort((a, b) => a - b)[25], 'of a minute, ms').toBeLessThan(100);
});
