/**
 * Part of `npm run bench`: SQL statements and transactions per plain message, one message at a time and with many chats
 * talking. Exits with 1 if a message was lost, answered twice or out of order.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Answered } from './answers.js';
import { gateway } from './bots.js';
import { type Counts, countsOf, readCounts } from './counts.js';
import type { Row } from './figures.js';
import { layOutGroups } from './fill.js';
import { readOptions } from './options.js';
import { createProcesses } from './processes.js';
import { resultsOf } from './results.js';

const { table } = resultsOf('statements');
const options = readOptions();
const CHATS = 50;
const EACH = options.quick ? 4 : 20;
const SINGLE = options.quick ? 5 : 20;
/** Two of them are its journal entries. */
const STATEMENTS_AIM = 33;
const WRITE_TRANSACTIONS_AIM = 3;
/** By then recall has indexed the messages. */
const REST_MS = 1_200;
const people = Array.from({ length: CHATS }, (_, n) => 200_001 + n);

const processes = createProcesses();
const folder = await mkdtemp(join(tmpdir(), 'coterie-bench-statements-'));
const countsFile = join(folder, 'counts');
let faults = 0;

async function main(): Promise<void> {
  await layOutGroups(folder);
  const { servers, start } = await gateway(processes, options, folder, { unbounded: true, countsFile });
  const bot = start();
  // Not counted: the first messages of a chat create its files and fill caches.
  await servers.conversations({ people, each: 3 });
  await rest();
  // Recall starts late, and scans everything at its first event.
  await servers.oneByOne({ people: people.slice(0, 1), each: 1 });
  await recallIsDone();
  const single: Counts[] = [];
  const behind: Counts[] = [];
  for (const person of people.slice(0, SINGLE)) {
    single.push(await countsPerMessage(() => servers.oneByOne({ people: [person], each: 1 })));
    const before = readCounts(countsFile);
    await rest();
    behind.push(difference(before, 1));
  }
  const together = await countsPerMessage(async () => {
    const answered = await servers.conversations({ people, each: EACH });
    await rest();
    return answered;
  });
  const all = [average(single), average(behind), together];
  const row = (what: string, value: (counts: Counts) => number, atMost?: number): Row => ({
    what,
    unit: '',
    values: all.map(value),
    ...(atMost === undefined ? {} : { aim: { atMost } }),
  });
  const rows = [
    row('selects', (counts) => counts.selects),
    row('writes', (counts) => counts.writes),
    row('pragmas', (counts) => counts.pragmas),
    row('BEGIN, COMMIT and the like', (counts) => counts.brackets),
    row('all statements', statements, STATEMENTS_AIM),
    row('write transactions', (counts) => counts.writeTransactions, WRITE_TRANSACTIONS_AIM),
    row('read transactions', (counts) => counts.readTransactions),
  ];
  console.log('What a plain message costs in the store, on average; behind it, recall reads what is new\n');
  console.log(`${table(['one by one', 'in the second behind it', `${CHATS} chats talking, both`], rows)}\n`);
  await bot.stop('SIGTERM');
}

/** Recall indexes the first messages in several batches. */
async function recallIsDone(): Promise<void> {
  for (let before = readCounts(countsFile), isBusy = true; isBusy; before = readCounts(countsFile)) {
    await rest();
    isBusy = difference(before, 1).selects > 0;
  }
}

async function countsPerMessage(talk: () => Promise<Answered>): Promise<Counts> {
  const before = readCounts(countsFile);
  const { messages, lost, doubled, outOfOrder } = await talk();
  faults += lost + doubled + outOfOrder;
  return difference(before, messages);
}

/** The counts since `before`, per message. */
function difference(before: Counts, messages: number): Counts {
  const now = readCounts(countsFile);
  return countsOf((name) => (now[name] - before[name]) / messages);
}

function average(all: Counts[]): Counts {
  return countsOf((name) => all.reduce((sum, counts) => sum + counts[name], 0) / all.length);
}

function rest(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, REST_MS));
}

function statements({ selects, writes, brackets, pragmas }: Counts): number {
  return selects + writes + brackets + pragmas;
}

try {
  await main();
} finally {
  await processes.endAll();
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
}
if (faults > 0) console.error('messages were lost, answered twice or out of order');
process.exit(faults > 0 ? 1 : 0);
