/**
 * Part of `npm run bench`: the cost of 10,000 schedules of which none is due. A gateway only looks at them once a
 * minute; compared with no schedules.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import Database from 'better-sqlite3';
import { systemClock } from '../src/core/clock.js';
import type { Log } from '../src/core/log.js';
import { type ClockParts, createAlarm, look } from '../src/jobs/clock.js';
import { openSqliteStore } from '../src/store/open.js';
import { quietMetrics } from '../test/harness/quiet.js';
import { median, quantile } from './figures.js';
import { readOptions } from './options.js';
import { resultsOf } from './results.js';

const { table } = resultsOf('jobs');
const { quick } = readOptions();
const LOOKS = quick ? 200 : 2_000;
const MANY = 10_000;
/** A sixty-thousandth of the minute. */
const AIM_MS = 1;
const log: Log = { debug() {}, info() {}, warn() {}, error() {} };
const migrationsFolder = fileURLToPath(new URL('../../migrations/sqlite', import.meta.url));

/** Durations of a look, ms, with this many schedules that are not due yet. */
async function looksWith(many: number): Promise<number[]> {
  const folder = await mkdtemp(join(tmpdir(), 'coterie-bench-jobs-'));
  const file = join(folder, 'coterie.db');
  const clock = systemClock;
  const store = await openSqliteStore({ file, migrationsFolder, clock, log });
  const raw = new Database(file);
  const add =
    raw.prepare(`insert into job (id, chat_id, n, room_id, persona_id, prompt, kind, value, timezone,
    follow_up, sender_id, created_at, state, next_at) values (?, ?, 1, ?, 'default', 'x', 'cron', '0 12 * * *', 'UTC', 0,
    '', 0, 'active', ?)`);
  raw.transaction(() => {
    const later = clock.now() + 86_400_000;
    for (let n = 0; n < many; n++) add.run(`job${n}`, `test_${n}`, `test_${n}`, later + n);
  })();
  raw.close();
  const parts: ClockParts = {
    ...{ store, clock, log, metrics: quietMetrics, alarm: createAlarm(), channels: ['test'] },
    rooms: { fired: async () => {}, say: async () => {} },
    door: { admits: async () => true },
    personas: { get: async () => null },
    rules: { missed: 'once', quietHours: null, timezone: 'UTC' },
  };
  const { signal } = new AbortController();
  const times: number[] = [];
  for (let n = 0; n < LOOKS; n++) {
    const before = performance.now();
    await look(parts, 0, signal);
    times.push(performance.now() - before);
  }
  await store.close();
  await rm(folder, { recursive: true, force: true });
  return times;
}

const none = await looksWith(0);
const all = await looksWith(MANY);
console.log(`What ${MANY.toLocaleString('en')} schedules cost a minute in which none is due\n`);
const aim = { atMost: AIM_MS };
const rows = [
  { what: 'a look, median', unit: 'ms' as const, values: [median(all), median(none)], aim },
  { what: 'a look, 99 of 100', unit: 'ms' as const, values: [quantile(all, 0.99), quantile(none, 0.99)] },
];
console.log(`${table([`with ${MANY.toLocaleString('en')}`, 'with none'], rows)}\n`);
