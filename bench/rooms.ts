/**
 * Part of `npm run bench`: the time that five personas of a room with a long history take to read it, one after
 * another, compared with the first one alone. If each read the history anew, all five would take five times as long.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../src/core/clock.js';
import type { Store } from '../src/core/store.js';
import { openSqliteStore } from '../src/store/open.js';
import { quietLog } from '../test/harness/quiet.js';
import { median } from './figures.js';
import { readOptions } from './options.js';
import { resultsOf } from './results.js';

const { table } = resultsOf('rooms');
const { quick } = readOptions();
const MIGRATIONS = fileURLToPath(new URL('../../migrations/sqlite', import.meta.url));
const PERSONAS = ['default', 'luna', 'max', 'nova', 'ada'];
const ROOM = 'telegram_-1';
const OWNER = 'bench';
const MESSAGES = quick ? 1_000 : 5_000;
const RUNS = quick ? 20 : 100;
const NOW = Date.UTC(2026, 0, 15);
/** The query of a turn. */
const WINDOW = { room: ROOM, limit: 800, overheard: 50, except: [] };

async function say(store: Store, n: number): Promise<void> {
  const sender = { id: 'telegram_1', name: 'Anna', administrator: false };
  const text = `Luna, Max, Nova, Ada: this is number ${n} of many, and it is about as long as what people write.`;
  await store.receive({
    channel: 'telegram',
    account: 'bench',
    now: NOW + n,
    receipts: [
      {
        kind: 'message',
        chat: { id: ROOM, address: '-1', kind: 'group', title: 'Garden' },
        threadId: null,
        platformMessageId: String(n),
        sender,
        text,
        sentAt: NOW + n,
        mentionsBot: false,
        replyTo: null,
      },
    ],
  });
  const seen = await store.readRoom(ROOM, OWNER, NOW + n);
  if (!seen) throw new Error('nothing waits');
  const waiting = seen.waiting.map(({ id }) => id);
  const turnId = `t${n}`;
  const claim = await store.hear({
    seen,
    lease: { owner: OWNER, now: NOW + n, leaseMs: 1_000 },
    turn: { id: turnId, personaId: 'luna', batch: waiting, taken: waiting, addressed: PERSONAS },
    noted: [],
    hearers: PERSONAS,
    exchange: null,
  });
  if (!claim) throw new Error('no turn begins');
  await store.finish({
    claim,
    turnId,
    outcome: 'answered',
    reply: `Yes, that was number ${n}.`,
    hearers: PERSONAS,
    addressed: PERSONAS,
    exchange: null,
    deliveries: [],
    send: null,
    usage: null,
    measured: null,
    given: null,
    now: NOW + n,
  });
}

function open(): Promise<Store> {
  const file = join(folder, 'coterie.db');
  return openSqliteStore({ file, migrationsFolder: MIGRATIONS, clock: systemClock, log: quietLog });
}

const folder = await mkdtemp(join(tmpdir(), 'coterie-bench-rooms-'));
const store = await open();
try {
  for (let n = 1; n <= MESSAGES; n++) await say(store, n);
  const first: number[] = [];
  const all: number[] = [];
  for (let run = 0; run < RUNS; run++) {
    // Another process writes, which invalidates cached windows.
    const other = await open();
    await say(other, MESSAGES + 1 + run);
    await other.close();
    const startedAt = performance.now();
    for (const [n, personaId] of PERSONAS.entries()) {
      const { messages } = await store.window({ ...WINDOW, personaId });
      if (messages.length < 800) throw new Error(`only ${messages.length} messages are in the window`);
      if (n === 0) first.push(performance.now() - startedAt);
    }
    all.push(performance.now() - startedAt);
  }
  const row = { what: 'reading a window of 800 messages', values: [median(all), median(first)] };
  console.log(
    `A room of five personas with ${MESSAGES * 2} messages (five readings would be 5.0; aim: under 2.5)\n`,
  );
  console.log(`${table(['all five', 'the first'], [{ ...row, unit: 'ms' }], 2.5)}\n`);
} finally {
  await store.close();
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
}
