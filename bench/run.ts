/**
 * `npm run bench`: the compiled gateway on fake servers on this machine, compared with two small bots. Prints tables;
 * exits with 1 if the gateway lost, doubled or reordered a message, whatever the figures. `--quick` takes a minute.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type GatewaySettings, gateway, type Subject, smallBot } from './bots.js';
import { type Aim, median, type Row } from './figures.js';
import { fill, layOutGroups } from './fill.js';
import { machine } from './machine.js';
import {
  begin,
  coldStart,
  type Fresh,
  figures,
  measure,
  measureFresh,
  type Running,
  type Sizes,
} from './measure.js';
import { readOptions } from './options.js';
import { createProcesses } from './processes.js';
import { resultsOf } from './results.js';

const { table } = resultsOf('run');
const options = readOptions();
const { quick, node, own } = options;
const AIM = 1.5;
/** Ratios to the floor bot, so that they hold on any machine. */
const AIMS: Partial<Record<keyof ReturnType<typeof figures>, Aim>> = {
  perSecond: { ratio: 2.2 },
  cpuMs: { ratio: 2.2 },
  idleMb: { ratio: 1.2 },
};
const WARM_START_AIM: Aim = { ratio: 0.85 };
const FRESH_AIMS: Record<keyof Fresh, Aim> = {
  cpuMs: { ratio: 1.1 },
  toModel: { ratio: 1.3 },
  toPlatform: { ratio: 1.1 },
};
/** Maximum cost of a message with much in the store, as a multiple of that with little. */
const GROWTH_AIM = 1.2;
const DEADLINE_MS = 420_000;

const TOGETHER = 50;
const BLOCKS = quick ? 2 : 6;
const peopleFrom = (first: number, count: number) => Array.from({ length: count }, (_, n) => first + n);
/** New people in each block, so that conversations stay short; long ones are measured last. */
const groups = Array.from({ length: BLOCKS }, (_, n) => peopleFrom(200_001 + n * TOGETHER, TOGETHER));
const somePeople = groups[0] ?? [];
const sizes: Sizes = {
  starts: quick ? 2 : 7,
  blocks: BLOCKS,
  groups,
  each: quick ? 3 : 6,
  burstEach: quick ? 3 : 6,
};
const MANY = quick ? { messages: 10_000, chats: 1_000 } : { messages: 100_000, chats: 10_000 };
/** The size of a window: a longer conversation should not cost more. */
const WINDOW = 200;
const TALKATIVE = 100_001;
const NOTED_MS = 100;

const processes = createProcesses();
const folder = await mkdtemp(join(tmpdir(), 'coterie-bench-'));
/** Runs of the gateway; the correctness of their answers decides the exit code. */
const measured: Running[] = [];

async function main(): Promise<void> {
  console.log(`${machine(node, folder)}\n`);
  await besideSmallBots();
  await withDefaults();
  // The store is filled by this checkout's code.
  if (own) await withMuchStored();
}

async function besideSmallBots(): Promise<void> {
  const small = [
    await smallBot(processes, options, 'limit', join(folder, 'limit')),
    await smallBot(processes, options, 'floor', join(folder, 'floor')),
  ];
  const first: number[] = [];
  const again: number[] = [];
  const smallStarts: number[][] = [[], []];
  let requestBytes = 0;
  for (let n = 0; n < sizes.starts; n++) {
    const ours = await freshGateway(`start-${n}`, { unbounded: true });
    first.push(await timeStart(ours, 0));
    if (n === 0) requestBytes = await ours.servers.requestBytes();
    again.push(await timeStart(ours, 1));
    await ours.servers.close();
    for (const [which, subject] of small.entries()) smallStarts[which]?.push(await timeStart(subject, n));
  }
  const us = await begin(await freshGateway('ours', { unbounded: true }));
  const runs = [us];
  for (const subject of small) runs.push(await begin(subject));
  const fresh: Fresh[] = [];
  for (const run of runs) fresh.push(await measureFresh(run, peopleFrom(100_001, quick ? 10 : 20)));
  await measure(runs, sizes);
  measured.push(us);
  const freshRow = (what: string, key: keyof Fresh): Row => ({
    what: `fresh process: ${what}`,
    values: fresh.map((found) => found[key]),
    unit: 'ms',
    aim: FRESH_AIMS[key],
  });
  const started = smallStarts.map(median);
  const rows: Row[] = [
    { what: 'cold start to first reply', values: [median(first), ...started], unit: 'ms' },
    { what: 'the same, started again', values: [median(again), ...started], unit: 'ms', aim: WARM_START_AIM },
    freshRow('processor time per message, one by one', 'cpuMs'),
    freshRow('update to model request, median', 'toModel'),
    freshRow('model answer to sendMessage, median', 'toPlatform'),
    ...rowsOf(runs, AIMS),
  ];
  console.log(
    'Answering at once, sending without a budget, in short conversations; every message is durable',
  );
  console.log(
    '(the limit is a durable bot on fetch and SQLite alone; the floor, on grammY and openai, keeps',
  );
  console.log('nothing, and knows no history and no order within a chat)\n');
  const names = ['coterie', 'limit', 'floor'];
  console.log(`${table(names, rows, AIM)}\n`);
  console.log(names.map((name, n) => outcome(name, runs[n])).join('\n'));
  console.log(`The request for a plain "hi": ${(requestBytes / 1000).toFixed(1)} kB (aim: under 8 kB)\n`);
  await Promise.all(runs.map(({ bot }, n) => bot.stop(n === 0 ? 'SIGTERM' : 'SIGKILL')));
  await Promise.all(runs.map(({ servers }) => servers.close()));
}

async function withDefaults(): Promise<void> {
  const ours = await freshGateway('defaults', {});
  const start = await timeStart(ours, 0);
  const us = await begin(ours);
  // Each answer takes half a second, thirty messages a second are sent: few samples are enough.
  const timed = { people: somePeople.slice(0, quick ? 5 : 20), each: 1 };
  await measure([us], { ...sizes, timed, blocks: 1, each: quick ? 1 : 3, burstEach: 1 });
  measured.push(us);
  console.log('With the defaults: answers wait 400 ms for more to come, and 30 messages a second go out\n');
  const rows: Row[] = [{ what: 'cold start to first reply', values: [start], unit: 'ms' }, ...rowsOf([us])];
  console.log(`${table(['coterie'], rows)}\n`);
  console.log(`${outcome('coterie', us)}\n`);
  await us.bot.stop('SIGTERM');
  await us.servers.close();
}

async function withMuchStored(): Promise<void> {
  const filledFrom = Date.now();
  const small = await filledGateway('small', somePeople, WINDOW);
  const large = await filledGateway('large', peopleFrom(200_001, MANY.chats), MANY.messages);
  const filling = ((Date.now() - filledFrom) / 1000).toFixed(0);
  const rows: Row[] = [];
  const starts: number[][] = [[], []];
  const newChats: number[][] = [[], []];
  for (let n = 0; n < (quick ? 1 : 3); n++) {
    for (const [which, subject] of [small, large].entries()) {
      const { bot, ms } = await coldStart(subject, 2 * n, TALKATIVE);
      starts[which]?.push(ms);
      const { toModel } = await subject.servers.oneByOne({ people: [900_001 + n], each: 1 });
      newChats[which]?.push(...toModel);
      await bot.stop('SIGTERM');
    }
  }
  rows.push({ what: 'start to first reply', values: starts.map(median), unit: 'ms' });
  rows.push({ what: 'first message of a new chat to model', values: newChats.map(median), unit: 'ms' });
  const runs = [await begin(small), await begin(large)];
  const timed = { people: [TALKATIVE], each: quick ? 25 : 50 };
  await measure(runs, { ...sizes, groups: [somePeople], timed, blocks: Math.ceil(BLOCKS / 2) });
  measured.push(...runs);
  rows.push(...rowsOf(runs));
  const columns = [
    `${MANY.messages.toLocaleString('en')} messages in the chat, ${MANY.chats.toLocaleString('en')} chats`,
    `${WINDOW} messages, ${somePeople.length} chats`,
  ];
  const largeFirst = rows.map((row) => ({ ...row, values: row.values.toReversed() }));
  console.log(`The cost does not grow (both stores were filled in ${filling} s, which is not counted)\n`);
  console.log(`${table(columns, largeFirst, GROWTH_AIM)}\n`);
  console.log(runs.map((run, n) => outcome(columns[1 - n] ?? '', run)).join('\n'));
  await Promise.all(runs.map((run) => run.bot.stop('SIGTERM')));
}

async function freshGateway(name: string, settings: GatewaySettings): Promise<Subject> {
  const home = join(folder, name);
  await layOutGroups(home);
  return gateway(processes, options, home, settings);
}

async function filledGateway(name: string, people: number[], messages: number): Promise<Subject> {
  const subject = await freshGateway(name, { unbounded: true });
  const others = people.map((person) => ({ person, messages: 2 }));
  await fill(join(folder, name), [{ person: TALKATIVE, messages }, ...others]);
  return subject;
}

async function timeStart(subject: Subject, sentBefore: number): Promise<number> {
  const { bot, ms } = await coldStart(subject, sentBefore, somePeople[0] ?? 0);
  // A small bot ends at once, and would resend answers not yet recorded as sent.
  await new Promise((resolve) => setTimeout(resolve, NOTED_MS));
  await bot.stop('SIGTERM');
  return ms;
}

function rowsOf(runs: Running[], aims: typeof AIMS = {}): Row[] {
  const found = runs.map(figures);
  const row = (what: string, unit: Row['unit'], key: keyof ReturnType<typeof figures>): Row => ({
    what,
    unit,
    values: found.map((each) => each[key]),
    ...(aims[key] ? { aim: aims[key] } : {}),
  });
  return [
    row('update to model request, median', 'ms', 'toModel'),
    row('update to model request, 95 %', 'ms', 'toModelLate'),
    row('model answer to sendMessage, median', 'ms', 'toPlatform'),
    row('model answer to sendMessage, 95 %', 'ms', 'toPlatformLate'),
    row(`messages a second, ${somePeople.length} chats talking`, '/s', 'perSecond'),
    row('messages a second, all at once', '/s', 'burstPerSecond'),
    row('processor time per message', 'ms', 'cpuMs'),
    row('processor time per message, one by one', 'ms', 'aloneCpuMs'),
    row('memory, idle', 'MB', 'idleMb'),
    row('memory, peak', 'MB', 'peakMb'),
  ];
}

function outcome(name: string, run: Running | undefined): string {
  if (!run) return '';
  const { faults, toModel } = run;
  const { messages, lost, doubled, outOfOrder } = faults;
  return `${name}: ${messages} messages, ${toModel.length} of them timed one by one; ${lost} lost, ${doubled} answered twice, ${outOfOrder} chats out of order`;
}

const deadline = setTimeout(() => {
  console.error(`the bench is not done after ${DEADLINE_MS / 1000} s: given up`);
  void end(1);
}, DEADLINE_MS);
process.once('SIGINT', () => void end(130));
process.once('SIGTERM', () => void end(143));

async function end(code: number): Promise<never> {
  clearTimeout(deadline);
  await processes.endAll();
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  process.exit(code);
}

try {
  await main();
} catch (error) {
  console.error(error);
  await end(1);
}
const faulty = measured.some(({ faults }) => faults.lost + faults.doubled + faults.outOfOrder > 0);
if (faulty) console.error('messages were lost, answered twice or out of order: see above');
await end(faulty ? 1 : 0);
