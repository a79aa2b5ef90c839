/**
 * Part of `npm run bench`: the cost of a message in long chats, with young and with full windows, and the growth of the
 * process's memory. Exits with 1 if a message was lost, answered twice or out of order.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gateway, type Subject } from './bots.js';
import type { Row } from './figures.js';
import { layOutGroups } from './fill.js';
import { readOptions } from './options.js';
import { type Bot, createProcesses } from './processes.js';
import { resultsOf } from './results.js';

const { table } = resultsOf('windows');
const options = readOptions();
const COST_AIM = 1.3;
const MEMORY_AIM_MB = 200;
/** Maximum growth of memory from full windows on, if it does not grow with the number of messages. */
const FLAT = 1.1;
const CHATS = options.quick ? 20 : 100;
/** Messages per person; answers double the windows. */
const YOUNG = { from: 0, to: 20 };
const FULL = { from: 80, to: 120 };
const SAID = options.quick ? FULL.to : 200;
/** A window counts as full at 200 messages on average, and is compacted only after that. */
const COMPACT_AFTER = 2 * FULL.to + 1;
/** Small enough for the servers' time-outs on a busy machine. */
const STEP = 10;
const MEMORY_AT = (options.quick ? [20, 100, 120] : [20, 100, 150, 200]).map((each) => each * CHATS);
const WARM_UP = { people: Array.from({ length: 20 }, (_, n) => 100_001 + n), each: options.quick ? 50 : 100 };
const people = Array.from({ length: CHATS }, (_, n) => 200_001 + n);

interface Cost {
  cpuMs: number | null;
  perSecond: number;
}

interface Step {
  messages: number;
  seconds: number;
  cpuMs: number | null;
}

const processes = createProcesses();
const folder = await mkdtemp(join(tmpdir(), 'coterie-bench-windows-'));
let faults = 0;

async function main(): Promise<void> {
  await layOutGroups(folder);
  const subject = await gateway(processes, options, folder, { unbounded: true, compactAfter: COMPACT_AFTER });
  const bot = subject.start();
  // Warm-up by other people, not timed: otherwise compilation would make young windows look expensive.
  for (let said = 0; said < WARM_UP.each; said += STEP) {
    await subject.servers.conversations({ people: WARM_UP.people, each: STEP });
  }
  const steps: Step[] = [];
  const memory = new Map<number, number | null>();
  for (let said = 0; said < SAID; said += STEP) {
    steps.push(await talk(subject, bot));
    memory.set((said + STEP) * CHATS, bot.memory()?.now ?? null);
  }
  const cost = (part: { from: number; to: number }) => costOf(steps.slice(part.from / STEP, part.to / STEP));
  const full = cost(FULL);
  const young = cost(YOUNG);
  const rows: Row[] = [
    { what: 'processor time per message', unit: 'ms', values: [full.cpuMs, young.cpuMs] },
    { what: 'messages a second', unit: '/s', values: [full.perSecond, young.perSecond] },
  ];
  const columns = [`windows of ${FULL.from * 2} to ${FULL.to * 2}`, `of ${YOUNG.from} to ${YOUNG.to * 2}`];
  console.log(`What a full window costs: ${CHATS} chats that talk on and on\n`);
  console.log(`${table(columns, rows, COST_AIM)}\n`);
  const compacting = costOf(steps.slice(FULL.to / STEP));
  if (SAID > FULL.to) {
    console.log(
      `Then windows are compacted and grow again: ${compacting.cpuMs?.toFixed(2) ?? 'n/a'} ms, ${compacting.perSecond.toFixed(0)} /s\n`,
    );
  }
  const sizes: Row[] = MEMORY_AT.map((messages) => ({
    what: `memory after ${messages.toLocaleString('en')} messages`,
    unit: 'MB',
    values: [memory.get(messages) ?? null],
    aim: { atMost: MEMORY_AIM_MB },
  }));
  const [reached, last] = [MEMORY_AT[1], MEMORY_AT.at(-1)].map((messages = 0) => memory.get(messages));
  const growth: Row = {
    what: 'the last of these, to the second',
    unit: '',
    values: [reached && last ? last / reached : null],
    aim: { atMost: FLAT },
  };
  const peak: Row = { what: 'memory, peak', unit: 'MB', values: [bot.memory()?.peak ?? null] };
  console.log(`${table(['coterie'], [...sizes, growth, peak])}\n`);
  await bot.stop('SIGTERM');
}

async function talk({ servers }: Subject, bot: Bot): Promise<Step> {
  const before = bot.cpuMs();
  const { messages, seconds, lost, doubled, outOfOrder } = await servers.conversations({
    people,
    each: STEP,
  });
  const after = bot.cpuMs();
  faults += lost + doubled + outOfOrder;
  return { messages, seconds, cpuMs: before === null || after === null ? null : after - before };
}

function costOf(steps: Step[]): Cost {
  const sum = (value: (step: Step) => number) => steps.reduce((total, step) => total + value(step), 0);
  const messages = sum((step) => step.messages);
  const known = steps.every(({ cpuMs }) => cpuMs !== null);
  return {
    cpuMs: known ? sum(({ cpuMs }) => cpuMs ?? 0) / messages : null,
    perSecond: messages / sum(({ seconds }) => seconds),
  };
}

try {
  await main();
} finally {
  await processes.endAll();
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
}
if (faults > 0) console.error('messages were lost, answered twice or out of order');
process.exit(faults > 0 ? 1 : 0);
