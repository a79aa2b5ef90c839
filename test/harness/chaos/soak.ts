/**
 * A day of traffic as fast as two gateways take it, without faults: what they keep must stay as large as it is, but for what
 * people said (flat.ts).
 */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '../gateway.js';
import { generator, pause } from '../random.js';
import type { Sample } from './flat.js';
import { createPeople, type People, scriptModel } from './people.js';
import { makeWorld, type World, type WorldOptions } from './world.js';

export interface FlatReport {
  samples: Sample[];
  seconds: number;
  postgres: string;
}

const MOST_OPEN = 40;
const ANSWERED_WITHIN_MS = 120_000;

export async function runSoak(
  plan: WorldOptions & { seed: number; messages: number; samples: number },
): Promise<FlatReport> {
  const begun = Date.now();
  const world = await makeWorld(plan);
  try {
    const random = generator(plan.seed);
    const people = createPeople(world.platforms, random, world.sender);
    scriptModel(world.model, generator(plan.seed + 1));
    for (const gateway of world.gateways) await world.start(gateway).saw('http listener on');
    people.greet();
    const samples: Sample[] = [];
    for (let n = 0; n < plan.samples; n++) {
      await talkUpTo(people, Math.round((plan.messages * (n + 1)) / plan.samples));
      await eventually(() => open(people) === 0, 'everybody is answered', ANSWERED_WITHIN_MS);
      samples.push(await sampleOf(world, people));
      plan.say(JSON.stringify(samples.at(-1)));
    }
    const [version] = await world.query<{ server_version: string }>('show server_version');
    return {
      ...{ samples, seconds: Math.round((Date.now() - begun) / 1_000) },
      postgres: version?.server_version ?? '',
    };
  } finally {
    await world.close();
  }
}

/** What is not answered though nobody forgot or stopped it. */
function open(people: People): number {
  const waiting = new Set(people.unanswered());
  const isSilenced = (chat: string, at: number) =>
    (['reset', 'stop'] as const).some((name) => people.silencedAt(chat, name).some((then) => then >= at));
  return people.said.filter(({ chat, token, at }) => waiting.has(token) && !isSilenced(chat, at)).length;
}

async function talkUpTo(people: People, messages: number): Promise<void> {
  const begun = Date.now();
  while (people.said.length < messages) {
    people.say();
    if (people.said.length % 10 > 0) continue;
    do await pause(20);
    while (open(people) > MOST_OPEN && Date.now() - begun < ANSWERED_WITHIN_MS);
  }
}

async function sampleOf(world: World, people: People): Promise<Sample> {
  const pids = world.gateways.map(({ running }) => running?.pid ?? -1);
  const tables = await world.query<{ name: string }>(
    `select tablename as name from pg_tables where schemaname = 'public'`,
  );
  const rows: Record<string, number> = {};
  for (const { name } of tables) {
    const [row] = await world.query<{ count: string }>(`select count(*) from "${name}"`);
    rows[name] = Number(row?.count);
  }
  const [size] = await world.query<{ bytes: string }>('select pg_database_size(current_database()) as bytes');
  const data = join(world.folder, 'data');
  const kilobytes = {
    database: Math.round(Number(size?.bytes) / 1024),
    groups: kilobytesOf(join(world.folder, 'groups')),
    ...Object.fromEntries(readdirSync(data).map((name) => [name, kilobytesOf(join(data, name))])),
  };
  const memoryMb = pids.map(
    (pid) => Number(/^VmRSS:\s*(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024,
  );
  const handles = pids.map((pid) => readdirSync(`/proc/${pid}/fd`).length);
  return { messages: people.said.length, memoryMb, handles, rows, kilobytes };
}

/** A file that goes away meanwhile counts nothing. */
function kilobytesOf(path: string): number {
  const info = statSync(path, { throwIfNoEntry: false });
  if (info === undefined) return 0;
  if (!info.isDirectory()) return Math.ceil(info.size / 1024);
  return readdirSync(path).reduce((sum, name) => sum + kilobytesOf(join(path, name)), 0);
}
