/**
 * `npm run bench:gateways`: fifty chats on Telegram and Discord with an instant model, answered by two gateways on one
 * PostgreSQL, by one gateway on it, and by one on SQLite, in turns in the same run. Then how long nobody is answered when a
 * gateway is killed, or stopped. Exits with 1 if a message was lost, answered twice or out of order.
 */
import { mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { missing, type PostgresServer, startPostgres } from '../test/harness/postgres.js';
import { median, quantile, type Row } from './figures.js';
import { machine } from './machine.js';
import { readOptions } from './options.js';
import { lookInto } from './postgres.js';
import { type Bot, createProcesses, type Remote } from './processes.js';
import { resultsOf } from './results.js';
import type { Talk, TalkCalls } from './talk-servers.js';

const { quick, node, main: gatewayScript } = readOptions();
const { table, note } = resultsOf('gateways');
const PLATFORMS = ['telegram', 'discord'];
const TOGETHER = 50;
const ROUNDS = quick ? 2 : 7;
const TALK_MS = quick ? 1_500 : 4_000;
/** The first messages of all compile the code. */
const COMPILE_MS = quick ? 1_500 : 6_000;
/** New people get their files. */
const WARM_UP_MS = 700;
const LEASES = quick ? [2] : [2, 15];
const PER_SECOND_AIM = 400;
const SHARE_AIM = 0.7;
/** For what follows a start, or the handover of a platform. */
const SETTLED_MS = 2_000;
const STEADY_MS = 2_000;
const SERVERS = fileURLToPath(new URL('./talk-servers.js', import.meta.url));

interface Subject {
  fakes: Remote<TalkCalls>[];
  gateways: Bot[];
  logs: string[];
  /** The server's processor time so far. */
  serverMs: () => number;
  /** Of its database on the server. */
  databaseBytes: () => Promise<number>;
  home: string;
  rounds: Round[];
  /** In all rounds and before them. */
  messages: number;
}

interface Round {
  perSecond: number;
  waits: number[];
  /** Processor time of each message, ms. */
  gatewayMs: number;
  serverMs: number;
  fakesMs: number;
}

/** In a term of a lease, with somebody waiting all the time. */
interface Takeover {
  takenMs: number;
  /** On each platform. */
  silenceMs: number[];
}

const processes = createProcesses();
const folder = await mkdtemp(join(tmpdir(), 'coterie-bench-'));
const faults = { messages: 0, lost: 0, doubled: 0, outOfOrder: 0 };
let homes = 0;

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Gateways that share a folder and a database, with fakes of their own; the first of them works before the others start. */
async function begin(
  names: string[],
  store: { url: string; server: PostgresServer; processorMs: () => number } | null,
  leaseSeconds = 15,
): Promise<Subject> {
  const fakes = await Promise.all(
    PLATFORMS.map((name) => processes.startRemote<Remote<TalkCalls>>(SERVERS, [name])),
  );
  const addresses = await Promise.all(fakes.map((each) => each.addresses()));
  const home = join(folder, `home-${homes++}`);
  await mkdir(home, { recursive: true });
  const subject: Subject = {
    fakes,
    gateways: [],
    logs: [],
    serverMs: store?.processorMs ?? (() => 0),
    databaseBytes: async () => {
      const sql = 'select pg_database_size(current_database()) as bytes';
      const [row] = (await store?.server.query<{ bytes: string }>(sql, store.url)) ?? [];
      return Number(row?.bytes ?? 0);
    },
    ...{ home, rounds: [], messages: 0 },
  };
  for (const [n, name] of names.entries()) {
    // JSON is YAML.
    const config = {
      model: { base_url: addresses[0]?.model, name: 'scripted' },
      channels: Object.fromEntries(PLATFORMS.map((platform, of) => [platform, addresses[of]?.config])),
      ...{ conversation: { debounce_ms: 0 }, access: { direct: 'open' }, board: { port: 0 } },
      log: { level: 'info', format: 'json' },
      ...(store && { store: { url: store.url }, node: { name, lease_seconds: leaseSeconds } }),
    };
    await writeFile(join(home, `${name}.yaml`), JSON.stringify(config));
    subject.logs[n] = '';
    const onLog = (text: string) => {
      subject.logs[n] += text;
      if (/"level":(?:"(?:error|fatal)"|[56]0)/.test(text)) console.error(text.trimEnd());
    };
    const args = [gatewayScript, 'start', '-c', `${name}.yaml`];
    subject.gateways.push(processes.startBot({ node, args, folder: home, onLog }));
    await saw(subject, n, /coterie is up|"event":"standby"/);
    if (n === 0) {
      await Promise.all(fakes.map((fake) => fake.connected()));
      await talk(subject, [1, 2], 10);
    }
    // It has lived for a lease when it asks the first for its share.
    else await saw(subject, n, /"event":"lease taken","lease":"channel:/);
  }
  await pause(SETTLED_MS);
  return subject;
}

async function saw({ logs }: Subject, n: number, what: RegExp): Promise<void> {
  for (let tries = 0; !what.test(logs[n] ?? ''); tries++) {
    if (tries > 6_000) throw new Error(`gateway ${n} never said ${what}: ${logs[n]?.slice(-2_000)}`);
    await pause(5);
  }
}

/** On each platform an equal part of them. */
async function talk(subject: Subject, people: number[], ms: number): Promise<Talk[]> {
  const { fakes } = subject;
  const found = await Promise.all(
    fakes.map((fake, n) => fake.talk({ people: people.filter((each) => each % fakes.length === n), ms })),
  );
  for (const each of found) {
    for (const key of ['messages', 'lost', 'doubled', 'outOfOrder'] as const) faults[key] += each[key];
    subject.messages += each.messages;
  }
  return found;
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
const peopleOf = (round: number) => Array.from({ length: TOGETHER }, (_, n) => 1_000 * (round + 1) + n);

async function measure(subject: Subject, round: number): Promise<void> {
  await talk(subject, peopleOf(round), WARM_UP_MS);
  const before = { gateways: cpuOf(subject), server: subject.serverMs() };
  const found = await talk(subject, peopleOf(round), TALK_MS);
  const messages = sum(found.map((each) => each.messages));
  subject.rounds.push({
    perSecond: (1_000 * sum(found.map(({ answered }) => answered))) / TALK_MS,
    waits: found.flatMap(({ waits }) => waits),
    gatewayMs: (cpuOf(subject) - before.gateways) / messages,
    serverMs: (subject.serverMs() - before.server) / messages,
    fakesMs: sum(found.map(({ fakesMs }) => fakesMs)) / messages,
  });
}

function cpuOf({ gateways }: Subject): number {
  return sum(gateways.map((gateway) => gateway.cpuMs() ?? 0));
}

/** kB of the folders' files. */
async function sizeOf(folders: string[], isCounted: (name: string) => boolean): Promise<number> {
  let bytes = 0;
  for (const each of folders) {
    const found = await readdir(each, { recursive: true, withFileTypes: true });
    for (const file of found.filter((entry) => entry.isFile() && isCounted(entry.name)))
      bytes += (await stat(join(file.parentPath, file.name))).size;
  }
  return bytes / 1_000;
}

/** kB of the database for each message, of the other files for each message, and of Markdown for each chat. */
async function storedBy({ home, messages, databaseBytes }: Subject, emptyBytes: number): Promise<number[]> {
  const [data, groups] = [join(home, 'data'), join(home, 'groups')];
  const isDatabase = (name: string) => name === 'coterie.db';
  const onServer = await databaseBytes();
  const database = onServer > 0 ? (onServer - emptyBytes) / 1_000 : await sizeOf([data], isDatabase);
  const others = await sizeOf([data], (name) => !isDatabase(name) && !/-(?:wal|shm)$/.test(name));
  const chats = (await readdir(groups)).filter((name) => /^(?:telegram|discord)_/.test(name));
  const markdown = await sizeOf(
    chats.map((chat) => join(groups, chat)),
    () => true,
  );
  return [database / messages, others / messages, markdown / chats.length];
}

async function end({ fakes, gateways }: Subject): Promise<void> {
  await Promise.all(gateways.map((gateway) => gateway.stop('SIGTERM')));
  await Promise.all(fakes.map((fake) => fake.close()));
}

async function throughput(server: PostgresServer | null): Promise<void> {
  const on = server && { server, ...(await lookInto(server)) };
  if (on) note({ postgresql: on.version });
  const subjects = on
    ? [
        await begin(['a', 'b'], { ...on, url: await on.server.emptyDatabase() }),
        await begin(['a'], { ...on, url: await on.server.emptyDatabase() }),
        await begin(['a'], null),
      ]
    : [await begin(['a'], null)];
  const empty = (await subjects[0]?.databaseBytes()) ?? 0;
  for (const each of subjects) await talk(each, peopleOf(ROUNDS), COMPILE_MS);
  for (let round = 0; round < ROUNDS; round++) {
    for (const each of round % 2 === 0 ? subjects : subjects.toReversed()) await measure(each, round);
  }
  const row = (
    what: string,
    unit: Row['unit'],
    value: (rounds: Round[]) => number,
    aim?: Row['aim'],
  ): Row => ({
    what,
    unit,
    values: subjects.map(({ rounds }) => value(rounds)),
    ...(on && aim ? { aim } : {}),
  });
  const of = (key: 'perSecond' | 'gatewayMs' | 'serverMs' | 'fakesMs') => (rounds: Round[]) =>
    median(rounds.map((each) => each[key]));
  const last = subjects.at(-1)?.rounds ?? [];
  const rows: Row[] = [
    row('messages a second', '/s', of('perSecond'), { atLeast: PER_SECOND_AIM }),
    row(
      'the same as a share of SQLite, round by round',
      '',
      (rounds) => median(rounds.map(({ perSecond }, n) => perSecond / (last[n]?.perSecond ?? Number.NaN))),
      { atLeast: SHARE_AIM },
    ),
    row('from message to answer, median', 'ms', (rounds) => median(rounds.flatMap(({ waits }) => waits))),
    row('from message to answer, 95 %', 'ms', (rounds) =>
      quantile(
        rounds.flatMap(({ waits }) => waits),
        0.95,
      ),
    ),
    row('processor time a message: gateways', 'ms', of('gatewayMs')),
    row('processor time a message: PostgreSQL', 'ms', of('serverMs')),
    row('processor time a message: fakes and people', 'ms', of('fakesMs')),
  ];
  const stored = await Promise.all(subjects.map((each) => storedBy(each, empty)));
  const kept = ['database, a message', 'other files, a message', 'Markdown, a chat'];
  for (const [n, what] of kept.entries())
    rows.push({ what: `kept: ${what}`, unit: 'kB', values: stored.map((each) => each[n] ?? null) });
  const peak = (each: Subject) => Math.max(...each.gateways.map((gateway) => gateway.memory()?.peak ?? 0));
  rows.push({ what: 'memory of a gateway at its peak', unit: 'MB', values: subjects.map(peak) });
  const columns = on ? ['two on PostgreSQL', 'one on PostgreSQL', 'one on SQLite'] : ['one on SQLite'];
  console.log(
    `${TOGETHER} chats on ${PLATFORMS.join(' and ')}, an instant model, one after the other in each chat\n`,
  );
  console.log(`${table(columns, rows, on ? null : undefined)}\n`);
  for (const each of subjects) await end(each);
}

/** The first of two ends while everybody talks. */
async function takeover(
  server: PostgresServer,
  leaseSeconds: number,
  signal: 'SIGKILL' | 'SIGTERM',
): Promise<Takeover> {
  const on = { server, url: await server.emptyDatabase(), ...(await lookInto(server)) };
  const subject = await begin(['a', 'b'], on, leaseSeconds);
  await talk(subject, peopleOf(0), WARM_UP_MS);
  const [first] = subject.gateways;
  const seen = subject.logs[1]?.length ?? 0;
  const talking = talk(subject, peopleOf(0), STEADY_MS + (leaseSeconds + 6) * 1_000);
  await pause(STEADY_MS);
  const ended = first?.stop(signal);
  const began = performance.now();
  while (!/"event":"lease taken","lease":"channel:/.test(subject.logs[1]?.slice(seen) ?? '')) await pause(2);
  const takenMs = performance.now() - began;
  const found = await talking;
  await ended;
  await end(subject);
  return { takenMs, silenceMs: found.map(({ silenceMs }) => silenceMs) };
}

async function takeovers(server: PostgresServer): Promise<void> {
  const rows: Row[] = [];
  for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
    for (const lease of signal === 'SIGKILL' ? LEASES : LEASES.slice(-1)) {
      const { takenMs, silenceMs } = await takeover(server, lease, signal);
      const what = `${signal === 'SIGKILL' ? 'kill -9' : 'SIGTERM'}, a lease of ${lease} s`;
      const atMost = signal === 'SIGKILL' ? (lease + 1) * 1_000 : 1_000;
      rows.push({
        what: `${what}: until the other has taken over`,
        unit: 'ms',
        values: [takenMs],
        aim: { atMost },
      });
      for (const [n, platform] of PLATFORMS.entries()) {
        const value = silenceMs[n] ?? null;
        rows.push({
          what: `${what}: longest time without an answer on ${platform}`,
          unit: 'ms',
          values: [value],
        });
      }
    }
  }
  console.log(
    `One of two gateways ends while ${TOGETHER} chats talk\n\n${table(['two on PostgreSQL'], rows)}\n`,
  );
}

const server = missing === null ? await startPostgres({ fsync: true }) : null;
let failed = false;
try {
  console.log(`${machine(node, folder)}\n`);
  if (server === null) console.log(`${missing}: only SQLite is measured\n`);
  await throughput(server);
  if (server) await takeovers(server);
  const { messages, lost, doubled, outOfOrder } = faults;
  console.log(
    `${messages} messages; ${lost} lost, ${doubled} answered twice, ${outOfOrder} chats out of order`,
  );
  failed = lost + doubled + outOfOrder > 0;
} catch (error) {
  console.error(error);
  failed = true;
}
await processes.endAll();
await server?.close();
await rm(folder, { recursive: true, force: true, maxRetries: 5 });
process.exit(failed ? 1 : 0);
