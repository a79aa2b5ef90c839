/**
 * Part of `npm run bench`: 1,000 tasks that a program submits at once over HTTP, with a model that answers immediately.
 * The floor: the same model requests, eight at a time, each stored in one transaction and its answer in another. Exits
 * with 1 if a task was not completed.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import type { Row } from './figures.js';
import { machine } from './machine.js';
import { readOptions } from './options.js';
import { createProcesses, type Processes } from './processes.js';
import { resultsOf } from './results.js';

const { table } = resultsOf('tasks');
const { node, main } = readOptions();
const TASKS = 1_000;
const AT_ONCE = 8;
/** Each takes a connection, of which the listener allows 256. */
const SUBMITTED_AT_ONCE = 50;
/** A task also reads its agent and workspace, and stores events, transcript and journal, unlike the floor. */
const RATIO_AIM = 8;
const MEMORY_AIM_MB = 400;
const DEADLINE_MS = 300_000;
const LOOK_EVERY_MS = 250;

interface Found {
  perSecond: number;
  completed: number;
  peakMb: number | null;
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

async function throughGateway(processes: Processes, folder: string, model: string): Promise<Found> {
  await mkdir(folder, { recursive: true });
  const config = {
    model: { base_url: model, name: 'scripted' },
    log: { level: 'info', format: 'json' },
    board: { port: 0 },
  };
  await writeFile(join(folder, 'config.yaml'), JSON.stringify(config));
  let listens: (url: string) => void = () => {};
  const listening = new Promise<string>((resolve) => {
    listens = resolve;
  });
  const onLog = (text: string) => {
    const url = /"url":"(http:[^"]+)"/.exec(text)?.[1];
    if (url !== undefined) listens(url);
  };
  const bot = processes.startBot({ node, args: [main, 'start'], folder, onLog });
  const url = await listening;
  // Not timed: the first one loads the code.
  await submit(url, -1);
  await completed(url, 1);
  const begun = performance.now();
  await inTurn(SUBMITTED_AT_ONCE, (n) => submit(url, n));
  const done = await completed(url, TASKS);
  const seconds = (performance.now() - begun) / 1000;
  const peakMb = bot.memory()?.peak ?? null;
  await bot.stop('SIGTERM');
  return { perSecond: done / seconds, completed: done, peakMb };
}

/** Calls `act` for each task, `atOnce` concurrently. */
async function inTurn(atOnce: number, act: (n: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next < TASKS) await act(next++);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}

async function submit(url: string, n: number): Promise<void> {
  const response = await fetch(`${url}/api/tasks`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ goal: `Say the number ${n}.`, idempotency_key: `bench-${n}` }),
  });
  const said = await response.text();
  if (response.status !== 202) throw new Error(`a task was answered with ${response.status}: ${said}`);
}

/** The number of completed tasks, once `wanted` have ended. */
async function completed(url: string, wanted: number): Promise<number> {
  const deadline = performance.now() + DEADLINE_MS;
  for (;;) {
    const { tasks } = (await (await fetch(`${url}/api/tasks?limit=${wanted}`)).json()) as {
      tasks: { status: string }[];
    };
    const over = tasks.filter(({ status }) => status !== 'pending' && status !== 'running');
    if (over.length >= wanted || performance.now() > deadline) {
      return over.filter(({ status }) => status === 'completed').length;
    }
    await pause(LOOK_EVERY_MS);
  }
}

async function floor(file: string, model: string): Promise<Found> {
  const raw = new Database(file);
  raw.pragma('journal_mode = wal');
  raw.exec('create table task (n integer primary key, goal text, answer text)');
  const add = raw.prepare('insert into task (n, goal) values (?, ?)');
  const end = raw.prepare('update task set answer = ? where n = ?');
  const begun = performance.now();
  for (let n = 0; n < TASKS; n++) add.run(n, `Say the number ${n}.`);
  await inTurn(AT_ONCE, async (n) => {
    const response = await fetch(`${model}/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        model: 'scripted',
        messages: [{ role: 'user', content: `Say the number ${n}.` }],
      }),
    });
    end.run(await response.text(), n);
  });
  const seconds = (performance.now() - begun) / 1000;
  raw.close();
  return { perSecond: TASKS / seconds, completed: TASKS, peakMb: null };
}

const processes = createProcesses();
const folder = await mkdtemp(join(tmpdir(), 'coterie-bench-tasks-'));
try {
  const servers = await processes.startServers();
  const { model } = await servers.addresses();
  const ours = await throughGateway(processes, join(folder, 'gateway'), model);
  const least = await floor(join(folder, 'floor.db'), model);
  const rows: Row[] = [
    { what: 'tasks', values: [ours.perSecond, least.perSecond], unit: '/s', aim: { ratio: RATIO_AIM } },
    { what: 'completed', values: [ours.completed, least.completed], unit: '', aim: { atLeast: TASKS } },
    { what: 'memory at most', values: [ours.peakMb, null], unit: 'MB', aim: { atMost: MEMORY_AIM_MB } },
  ];
  console.log(`${machine(node, folder)}\n`);
  console.log(`${TASKS.toLocaleString('en')} tasks given at once, with a model that answers at once\n`);
  console.log(`${table(['tasks', 'floor'], rows)}\n`);
  if (ours.completed < TASKS) process.exitCode = 1;
} finally {
  await processes.endAll();
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
}
