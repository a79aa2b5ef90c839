/**
 * Part of `npm run bench:board`, with `--dist DIR` only: start and memory of a gateway at which nobody looks, compared with a
 * gateway without the page, in turns.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type GatewaySettings, gateway, type Subject } from './bots.js';
import { median, type Row } from './figures.js';
import { layOutGroups } from './fill.js';
import { coldStart } from './measure.js';
import { OWN_MAIN, readOptions } from './options.js';
import { createProcesses } from './processes.js';
import { resultsOf } from './results.js';

const { table } = resultsOf('board-idle');
const options = readOptions();
const { quick, own } = options;
const STARTS = quick ? 5 : 31;
const MEMORIES = quick ? 1 : 3;
const MESSAGES = { people: Array.from({ length: 50 }, (_, n) => 200_001 + n), each: 20 };
const HEAP = new URL('./board-heap.js', import.meta.url).href;
const REST_MS = 1_500;
const processes = createProcesses();
const folder = await mkdtemp(join(tmpdir(), 'coterie-bench-board-idle-'));
const mains = [OWN_MAIN, options.main];
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

const subjectOf = (n: number, name: string, settings: GatewaySettings = {}) =>
  gateway(processes, { ...options, main: mains[n] ?? '' }, join(folder, `${name}-${n}`), {
    unbounded: true,
    ...settings,
  });

/** Milliseconds from the start of its process to its first reply, of each in turn. */
async function starts(): Promise<number[][]> {
  const subjects = [await subjectOf(0, 'start'), await subjectOf(1, 'start')];
  const found: number[][] = [[], []];
  // The first of each makes its database and is not counted.
  for (let round = 0; round <= STARTS; round++) {
    // Whoever comes second finds warmer caches.
    for (const n of round % 2 === 0 ? [0, 1] : [1, 0]) {
      const { bot, ms } = await coldStart(subjects[n] as Subject, round, 1);
      await bot.stop();
      if (round > 0) found[n]?.push(ms);
    }
  }
  return found;
}

/** Heap and resident memory after the start, and after a thousand messages, MB; garbage is collected before. */
async function memory(n: number, round: number): Promise<number[]> {
  let log = '';
  const { servers, start } = await subjectOf(n, `memory-${round}`, {
    nodeArgs: ['--expose-gc', '--import', HEAP],
    onLog: (text) => {
      log += text;
    },
  });
  const bot = start();
  const read = async () => {
    await pause(REST_MS);
    log = '';
    process.kill(bot.pid, 'SIGUSR2');
    for (let tries = 0; tries < 200 && !log.includes('\n'); tries++) await pause(20);
    const [, heap, rss] = /heap (\S+) (\S+)/.exec(log) ?? [];
    if (rss === undefined) throw new Error(`the gateway did not say its memory: ${log}`);
    return [Number(heap), Number(rss)];
  };
  await servers.oneByOne({ people: [1], each: 1 });
  const found = await read();
  await servers.conversations(MESSAGES);
  found.push(...(await read()));
  await bot.stop();
  return found;
}

try {
  if (own) {
    console.log('Start and memory were not compared: `--dist DIR` names the gateway of another checkout\n');
  } else {
    await layOutGroups(folder);
    const times = await starts();
    const memories: number[][][] = [[], []];
    for (let round = 0; round < MEMORIES; round++) {
      for (const n of [0, 1]) memories[n]?.push(await memory(n, round));
    }
    const of = (what: string, unit: 'ms' | 'MB', most: number | null, pick: (n: number) => number): Row => {
      const [ours, theirs] = [pick(0), pick(1)];
      return {
        what,
        values: [ours - theirs, ours, theirs],
        unit,
        ...(most !== null && { aim: { atMost: most } }),
      };
    };
    const held = (n: number, column: number) =>
      median((memories[n] ?? []).map((each) => each[column] ?? Number.NaN));
    const rows = [
      of('start to first reply', 'ms', 10, (n) => median(times[n] ?? [])),
      of('heap after the start', 'MB', 3, (n) => held(n, 0)),
      of('heap after 1,000 messages', 'MB', 3, (n) => held(n, 2)),
      of('resident after the start', 'MB', null, (n) => held(n, 1)),
      of('resident after 1,000 messages', 'MB', null, (n) => held(n, 3)),
    ];
    console.log(`A gateway at which nobody looks, ${STARTS} starts each\n`);
    console.log(`${table(['more', 'coterie', 'before'], rows)}\n`);
  }
} finally {
  await processes.endAll();
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
}
process.exit();
