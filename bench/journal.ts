/**
 * Part of `npm run bench`: the cost of the journal per tool call, both phases, in a store with a day of calls. Each
 * call is a step before it runs and one with its result, measured with and without the journal.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../src/core/clock.js';
import { callEntryId } from '../src/core/ids.js';
import type { JournalWrite } from '../src/core/journal.js';
import type { Claim, Store } from '../src/core/store.js';
import { openSqliteStore } from '../src/store/open.js';
import { begun, CHAT, message, NOW, receive } from '../test/contract/store/words.js';
import { median, quantile, type Row } from './figures.js';
import { readOptions } from './options.js';
import { resultsOf } from './results.js';

const { table } = resultsOf('journal');
const { quick } = readOptions();
const AIM_MS = 1;
const CALLS = quick ? 500 : 3_000;
const THERE = quick ? 2_000 : 10_000;
const TURN = 'bench';
const silent = { debug() {}, info() {}, warn() {}, error() {} };
const folder = await mkdtemp(join(tmpdir(), 'coterie-bench-journal-'));

function phases(call: string): { intent: JournalWrite; outcome: JournalWrite } {
  const id = callEntryId(TURN, call);
  const results = { stdout: 'x'.repeat(2_000), stderr: '', code: 0 };
  return {
    intent: {
      ...{ kind: 'intent', chatId: CHAT, room: CHAT, personaId: 'default', turnId: TURN },
      entry: {
        ...{ id, type: 'MattTurn', agent: 'default', parent_event_id: 'evt-1' },
        ...{ timestamp_intent: new Date(NOW).toISOString(), status: 'pending', reasoning: 'I look.' },
        ...{ action: { tool: 'shell', command: 'tail -n 20 error.log' }, results: null },
      },
    },
    outcome: { kind: 'outcome', id, status: 'completed', results, at: NOW },
  };
}

async function callOnce(store: Store, claim: Claim, call: string, journalled: boolean): Promise<number> {
  const { intent, outcome } = phases(call);
  const begun = performance.now();
  await store.addStep(claim, TURN, { kind: 'call', callId: call }, NOW, {
    entries: journalled ? [intent] : [],
  });
  const result = { kind: 'result', callId: call, content: 'x'.repeat(2_000), failed: false } as const;
  await store.addStep(claim, TURN, result, NOW, { entries: journalled ? [outcome] : [] });
  return performance.now() - begun;
}

async function main(): Promise<void> {
  const store = await openSqliteStore({
    file: join(folder, 'coterie.db'),
    migrationsFolder: fileURLToPath(new URL('../../migrations/sqlite', import.meta.url)),
    clock: systemClock,
    log: silent,
  });
  for (let n = 0; n < THERE; n += 100) {
    const some = Array.from({ length: 100 }, (_, one) => phases(`there-${n + one}`));
    await store.append(
      some.flatMap(({ intent, outcome }) => [intent, outcome]),
      'bench',
    );
  }
  await receive(store, [message('1', 'look')]);
  const { claim } = await begun(store, TURN);
  const [withIt, without]: number[][] = [[], []];
  for (let n = 0; n < CALLS; n++) {
    without?.push(await callOnce(store, claim, `plain-${n}`, false));
    withIt?.push(await callOnce(store, claim, `call-${n}`, true));
  }
  await store.close();
  const all = [withIt ?? [], without ?? []];
  const cost = median(all[0] ?? []) - median(all[1] ?? []);
  const rows: Row[] = [
    { what: 'journal, both phases, median', unit: 'ms', values: [cost, null], aim: { atMost: AIM_MS } },
    { what: 'tool call in the store, median', unit: 'ms', values: all.map(median) },
    { what: 'tool call in the store, 95 %', unit: 'ms', values: all.map((one) => quantile(one, 0.95)) },
  ];
  console.log(`What a tool call costs in the store, with ${THERE} entries in the journal\n`);
  console.log(`${table(['with the journal', 'without'], rows)}\n`);
}

try {
  await main();
} finally {
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
}
