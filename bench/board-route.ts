/**
 * Part of `npm run bench:board`: the gateway's processor time per message while twenty pages are open, compared with the
 * same gateway at a time without pages, in turns.
 */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { WebSocket } from 'ws';
import type { LiveAsk } from '../src/board/protocol.js';
import { freePort, gateway } from './bots.js';
import { median, type Row } from './figures.js';
import { layOutGroups } from './fill.js';
import { machine } from './machine.js';
import { readOptions } from './options.js';
import { createProcesses } from './processes.js';
import { resultsOf } from './results.js';

const { table } = resultsOf('board-route');
const options = readOptions();
const { quick } = options;
const PAGES = 20;
const TOGETHER = 50;
const EACH = quick ? 4 : 8;
const ROUNDS = quick ? 3 : 12;
const AIM = 1.05;
const SETTLE_MS = 600;
/** Of each round others, since a message of a long conversation costs more. */
const peopleOf = (round: number) => Array.from({ length: TOGETHER }, (_, n) => firstOf(round) + n);
const firstOf = (round: number) => 200_001 + round * TOGETHER;
const roomOf = (person: number) => `telegram_${person}`;

/** The room that each page follows; null: the page follows none. */
type Follows = (page: number, round: number) => string | null;
const WAYS = {
  'the same room, of the fifty': (_, round) => roomOf(firstOf(round)),
  'twenty of the fifty rooms': (page, round) => roomOf(firstOf(round) + page),
  'rooms in which nobody speaks': (page) => roomOf(900_001 + page),
  'no room': () => null,
} satisfies Record<string, Follows>;
type Way = keyof typeof WAYS;

const processes = createProcesses();
const folder = await mkdtemp(join(tmpdir(), 'coterie-bench-board-'));
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

async function openPages(port: number, follows: (page: number) => string | null) {
  const heard = { frames: 0, bytes: 0 };
  const lines = await Promise.all(
    Array.from({ length: PAGES }, async (_, page) => {
      const line = new WebSocket(`ws://127.0.0.1:${port}/api/board/live`, {
        origin: `http://127.0.0.1:${port}`,
      });
      line.on('message', (data: Buffer) => {
        heard.frames += 1;
        heard.bytes += data.length;
      });
      await once(line, 'open');
      const room = follows(page);
      if (room !== null)
        line.send(JSON.stringify({ kind: 'follow', room, position: null } satisfies LiveAsk));
      return line;
    }),
  );
  await pause(SETTLE_MS);
  return {
    heard,
    close: async () => {
      const ends = lines.map((line) => once(line, 'close'));
      for (const line of lines) line.close();
      await Promise.all(ends);
    },
  };
}

try {
  await layOutGroups(folder);
  const port = await freePort();
  const { servers, start } = await gateway(processes, options, folder, { unbounded: true, boardPort: port });
  const bot = start();
  console.log(`${machine(options.node, folder)}\n`);
  for (let n = 0; n < 2; n++) await servers.conversations({ people: peopleOf(-1), each: 10 });
  let faults = 0;
  const cpuPerMessage = async (round: number, follows: Follows | null) => {
    const people = peopleOf(round);
    const pages = follows && (await openPages(port, (page) => follows(page, round)));
    const before = bot.cpuMs() ?? Number.NaN;
    const found = await servers.conversations({ people, each: EACH });
    const after = bot.cpuMs() ?? Number.NaN;
    await pages?.close();
    faults += found.lost + found.doubled + found.outOfOrder;
    if (pages && follows?.(0, round) === roomOf(firstOf(round)) && pages.heard.frames < PAGES * 2)
      throw new Error('the pages heard nothing');
    return (after - before) / found.messages;
  };
  const ratios = new Map<Way, number[]>();
  const costs = new Map<Way, number[]>();
  const without: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    // Each between two without pages, since other load comes and goes.
    await servers.conversations({ people: peopleOf(round), each: 2 });
    let before = await cpuPerMessage(round, null);
    for (const [way, follows] of Object.entries(WAYS) as [Way, Follows][]) {
      const cost = await cpuPerMessage(round, follows);
      const after = await cpuPerMessage(round, null);
      without.push(after);
      costs.set(way, [...(costs.get(way) ?? []), cost]);
      ratios.set(way, [...(ratios.get(way) ?? []), cost / ((before + after) / 2)]);
      before = after;
    }
  }
  const rows = Object.keys(WAYS).map((way): Row => {
    const ratio = median(ratios.get(way as Way) ?? []);
    return {
      what: `they follow ${way}`,
      values: [ratio, median(costs.get(way as Way) ?? [])],
      unit: '',
      aim: { atMost: AIM },
    };
  });
  console.log(
    `Processor time per message with ${PAGES} open pages, ${TOGETHER} chats; without ${median(without).toFixed(2)} ms\n`,
  );
  console.log(`${table(['share', 'ms a message'], rows)}\n`);
  if (faults > 0) throw new Error(`${faults} messages were lost, doubled or out of order`);
} finally {
  await processes.endAll();
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
}
process.exit();
