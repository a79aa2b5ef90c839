/**
 * Part of `npm run bench`: the cost of live replies. Two gateways, with and without, and answers that come at once or
 * take the model seconds. Exits with 1 if a message was lost or answered twice, or a chat was changed more than once a
 * second.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gateway, type Subject } from './bots.js';
import { median, medianOf, type Row } from './figures.js';
import { layOutGroups } from './fill.js';
import { readOptions } from './options.js';
import { type Bot, createProcesses } from './processes.js';
import { resultsOf } from './results.js';

const { table } = resultsOf('streaming');
const options = readOptions();
const { quick } = options;
/** At least four fifths of the throughput. */
const AIM = 1.25;
const BLOCKS = quick ? 2 : 5;
const TOGETHER = 50;
const WRITING = { each: quick ? 1 : 2, pieces: 30, ms: 3_000 };
const peopleOf = (block: number) =>
  Array.from({ length: TOGETHER }, (_, n) => 200_001 + block * TOGETHER + n);

interface Run {
  subject: Subject;
  bot: Bot;
  atOnce: number[];
  perSecond: number[];
  cpuMs: (number | null)[];
  edits: number[];
  mostChanges: number;
  faults: number;
}

const processes = createProcesses();
const folder = await mkdtemp(join(tmpdir(), 'coterie-bench-streaming-'));

async function begin(streaming: boolean): Promise<Run> {
  const home = join(folder, streaming ? 'on' : 'off');
  await layOutGroups(home);
  const subject = await gateway(processes, options, home, { unbounded: true, streaming });
  const bot = subject.start();
  await subject.servers.oneByOne({ people: [1], each: 1 });
  return { subject, bot, atOnce: [], perSecond: [], cpuMs: [], edits: [], mostChanges: 0, faults: 0 };
}

async function measure(run: Run, people: number[]): Promise<void> {
  const { servers } = run.subject;
  // Not timed: the first messages of a chat create its files.
  await servers.conversations({ people, each: 2 });
  const quickly = await servers.conversations({ people, each: 6 });
  run.atOnce.push(quickly.messages / quickly.seconds);
  const before = run.bot.cpuMs();
  const slowly = await servers.written({ people, ...WRITING });
  const after = run.bot.cpuMs();
  run.perSecond.push(slowly.messages / slowly.seconds);
  run.cpuMs.push(before === null || after === null ? null : (after - before) / slowly.messages);
  run.edits.push(slowly.edits / slowly.messages);
  run.mostChanges = Math.max(run.mostChanges, slowly.mostChanges);
  for (const { lost, doubled, outOfOrder } of [quickly, slowly]) run.faults += lost + doubled + outOfOrder;
}

let failed = true;
try {
  const on = await begin(true);
  const off = await begin(false);
  for (let block = 0; block < BLOCKS; block++) {
    for (const run of [on, off]) await measure(run, peopleOf(block));
  }
  const both = [on, off];
  const rows: Row[] = [
    {
      what: 'messages a second, answered at once',
      values: both.map((run) => median(run.atOnce)),
      unit: '/s',
    },
    {
      what: `messages a second, written in ${WRITING.ms / 1000} s`,
      values: both.map((run) => median(run.perSecond)),
      unit: '/s',
    },
  ];
  console.log(
    `Replies that can be seen while they are written, ${TOGETHER} chats (aim: four fifths at least)\n`,
  );
  console.log(`${table(['shown', 'whole'], rows, AIM)}\n`);
  const cpu = both.map((run) => medianOf(run.cpuMs)?.toFixed(1) ?? 'n/a');
  console.log(
    `Processor time per written message: ${cpu.join(' ms, whole ')} ms; ${median(on.edits).toFixed(1)} edits each`,
  );
  console.log(`Changes of one chat in a second, at most: ${on.mostChanges} (aim: 1)\n`);
  failed = on.faults + off.faults > 0 || on.mostChanges > 1;
  if (failed) console.error('messages were lost or answered twice, or shown too often: see above');
} finally {
  await processes.endAll();
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
}
process.exit(failed ? 1 : 0);
