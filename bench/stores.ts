/**
 * Part of `npm run bench`: the verbs of a plain message on SQLite and on a PostgreSQL of its own (Unix socket, fsync on),
 * in turns in the same run: one message after the other, and with many chats at once. Without an installed PostgreSQL
 * it is SQLite alone.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { systemClock } from '../src/core/clock.js';
import type { Lease, Store } from '../src/core/store.js';
import { migrate } from '../src/store/migrate.js';
import { openStoreAt, storeOn } from '../src/store/open.js';
import { connect } from '../src/store/sqlite/connection.js';
import { missing, type PostgresServer, startPostgres } from '../test/harness/postgres.js';
import { quietLog } from '../test/harness/quiet.js';
import { median, quantile, type Row } from './figures.js';
import { readOptions } from './options.js';
import { lookInto } from './postgres.js';
import { resultsOf } from './results.js';

const { table, note } = resultsOf('stores');
const { quick } = readOptions();
const CHATS = 50;
/** Of each kind, after those that warm up. */
const ROUNDS = quick ? 5 : 25;
const WARM_UP = 5;
const EACH = 4;
const ALONE_CHATS = 25;
const CPU_AIM = 4.5;
const TRANSACTIONS_AIM = 0.3;
const ALONE_AIM_MS = 10;
const NOW = Date.UTC(2026, 0, 15, 12);
const migrations = (name: string) => fileURLToPath(new URL(`../../migrations/${name}`, import.meta.url));

interface Subject {
  store: Store;
  /** Processor time of the server's processes so far, ms. */
  serverMs(): number;
  /** Of each round. */
  alone: { times: number[]; cpuMs: number }[];
  together: { ms: number; nodeMs: number; serverMs: number }[];
}

let said = 0;

/** The store's verbs for one message, as the route asks for them. */
async function oneMessage(store: Store, chatId: string): Promise<void> {
  const n = ++said;
  const now = NOW + n;
  const sender = { id: 'telegram_1', name: 'Anna', administrator: false };
  const lease: Lease = { owner: 'bench', now, leaseMs: 60_000 };
  await store.chatOf(chatId);
  await store.aliasOf(sender.id);
  await store.approvalOf({ chatId, senderId: sender.id });
  await store.question({ room: chatId, senderId: sender.id, now });
  const chat = { id: chatId, address: chatId, kind: 'group' as const, title: 'Garden' };
  await store.receive({
    channel: 'telegram',
    account: 'bench',
    now,
    cursor: String(n),
    receipts: [
      {
        kind: 'message',
        ...{
          chat,
          threadId: null,
          platformMessageId: String(n),
          sender,
          text: 'Hi there, how are you today?',
        },
        ...{ sentAt: now, mentionsBot: false, replyTo: null },
      },
    ],
  });
  await store.durable();
  const seen = await store.readRoom(chatId, 'bench', now);
  if (!seen) throw new Error('nothing waits');
  const batch = seen.waiting.map(({ id }) => id);
  const turnId = `t${n}`;
  const turn = { id: turnId, personaId: 'default', batch, taken: batch, addressed: [] };
  const claim = await store.hear({
    seen,
    lease,
    turn,
    noted: [],
    hearers: [],
    exchange: null,
    forBots: false,
  });
  if (!claim) throw new Error('no turn begins');
  await store.window({ room: chatId, personaId: 'default', limit: 200, overheard: 50, except: batch });
  const body = { text: 'Fine, thank you.', marks: [] };
  const origin = `turn:${turnId}`;
  const ended = await store.finish({
    ...{ claim, turnId, outcome: 'answered', reply: body.text, hearers: [], addressed: [], exchange: null },
    deliveries: [{ origin, personaId: 'default', speaker: 'Default', part: 0, body, replyTo: null }],
    ...{ send: lease, now, usage: { inputTokens: 1, outputTokens: 1 } },
    measured: { counted: 10, estimated: 9 },
    given: { memory: 'm', dailyLog: 'd', recalled: 'r', summary: 's' },
  });
  if (ended === 'lost' || !ended.first) throw new Error('there is nothing to send');
  await store.settle(ended.first.id, { kind: 'sent', platformMessageId: `p${n}` }, now);
}

/** The same chats go on for forty messages each, then others do. */
const chatsOf = (round: number, count: number) =>
  Array.from({ length: count }, (_, n) => `telegram_-${1 + n + CHATS * Math.floor(round / 10)}`);

async function aloneIn({ store, alone }: Subject, round: number): Promise<void> {
  const before = process.cpuUsage();
  const times: number[] = [];
  for (const chat of chatsOf(round, ALONE_CHATS)) {
    const startedAt = performance.now();
    await oneMessage(store, chat);
    times.push(performance.now() - startedAt);
  }
  alone.push({ times, cpuMs: cpuMs(before) / ALONE_CHATS });
}

/** All chats at once; in each, one message after the other. */
async function talk(store: Store, round: number): Promise<void> {
  await Promise.all(
    chatsOf(round, CHATS).map(async (chat) => {
      for (let n = 0; n < EACH; n++) await oneMessage(store, chat);
    }),
  );
}

async function togetherIn({ store, serverMs, together }: Subject, round: number): Promise<void> {
  const before = { cpu: process.cpuUsage(), server: serverMs(), at: performance.now() };
  await talk(store, round);
  const messages = CHATS * EACH;
  together.push({
    ms: (performance.now() - before.at) / messages,
    nodeMs: cpuMs(before.cpu) / messages,
    serverMs: (serverMs() - before.server) / messages,
  });
}

function cpuMs(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

interface Counts {
  statements: number;
  transactions: number;
}

/** What a message costs with many chats, counted in a run of its own. */
async function counted(store: Store, ran: string[], isCommit: RegExp): Promise<Counts> {
  await talk(store, 0);
  ran.length = 0;
  await talk(store, 0);
  const transactions = ran.filter((sql) => isCommit.test(sql)).length / (CHATS * EACH);
  return { statements: ran.length / (CHATS * EACH), transactions };
}

async function countedSqlite(): Promise<Counts> {
  const ran: string[] = [];
  const onStatement = (sql: string) => ran.push(sql);
  const file = join(folder, 'counted.db');
  const connection = await connect({ file, clock: systemClock, busyTimeoutMs: 0, onStatement });
  await migrate(connection, migrations('sqlite'));
  const counts = await counted(storeOn(connection), ran, /^COMMIT/);
  await connection.close();
  return counts;
}

async function countedPostgres(server: PostgresServer): Promise<Counts> {
  const ran: string[] = [];
  const client = pg.Client.prototype as { query(...args: unknown[]): unknown };
  const { query } = client;
  client.query = function (this: unknown, ...args: unknown[]) {
    const [asked] = args as [string | { text: string }];
    ran.push(typeof asked === 'string' ? asked : asked.text);
    return query.apply(this, args);
  };
  const store = await openAt(await server.emptyDatabase());
  const counts = await counted(store, ran, /^commit/);
  client.query = query;
  await store.close();
  return counts;
}

function openAt(url: string | null): Promise<Store> {
  const file = join(folder, 'coterie.db');
  const migrationsFolder = migrations(url === null ? 'sqlite' : 'postgres');
  const sqliteMigrations = migrations('sqlite');
  const at = { url, file, migrationsFolder, sqliteMigrations, connections: 8, waitMs: 30_000 };
  return openStoreAt(at, { clock: systemClock, log: quietLog });
}

async function subject(url: string | null, serverMs = () => 0): Promise<Subject> {
  return { store: await openAt(url), serverMs, alone: [], together: [] };
}

async function main(server: PostgresServer | null): Promise<void> {
  const url = await server?.emptyDatabase();
  const subjects = [await subject(null)];
  const counts = [await countedSqlite()];
  if (server) {
    const { processorMs, version } = await lookInto(server);
    note({ postgresql: version });
    subjects.unshift(await subject(url ?? null, processorMs));
    counts.unshift(await countedPostgres(server));
  }
  for (const round of [aloneIn, togetherIn]) {
    for (let n = 0; n < WARM_UP + ROUNDS; n++) {
      // As the server does by itself within minutes; until then it reads the tables as if they were empty.
      if (n === WARM_UP && url) await server?.query('analyze', url);
      for (const each of n % 2 === 0 ? subjects : subjects.toReversed()) await round(each, n);
    }
  }
  const row = (
    what: string,
    unit: Row['unit'],
    value: (each: Subject, n: number) => number | null,
    aim?: Row['aim'],
  ): Row => ({
    what,
    unit,
    values: subjects.map(value),
    ...(server && aim ? { aim } : {}),
  });
  const timesOf = ({ alone }: Subject) => alone.slice(WARM_UP).flatMap(({ times }) => times);
  const of = (name: 'ms' | 'nodeMs' | 'serverMs') => (each: Subject) =>
    median(each.together.slice(WARM_UP).map((round) => round[name]));
  const cpu = ({ together }: Subject) =>
    median(together.slice(WARM_UP).map(({ nodeMs, serverMs }) => nodeMs + serverMs));
  const chats = `${CHATS} chats at once`;
  const rows = [
    row('one by one: all verbs of a message, median', 'ms', (each) => median(timesOf(each)), {
      atMost: ALONE_AIM_MS,
    }),
    row('one by one: all verbs of a message, 95 %', 'ms', (each) => quantile(timesOf(each), 0.95)),
    row('one by one: processor time of the gateway', 'ms', ({ alone }) =>
      median(alone.slice(WARM_UP).map(({ cpuMs }) => cpuMs)),
    ),
    row(`${chats}: processor time, with the server's`, 'ms', cpu, { ratio: CPU_AIM }),
    row(`${chats}: processor time of the gateway`, 'ms', of('nodeMs')),
    row(`${chats}: processor time of the server`, 'ms', (each) => of('serverMs')(each) || null),
    row(`${chats}: time a message`, 'ms', of('ms')),
    row(`${chats}: write transactions a message`, '', (_, n) => counts[n]?.transactions ?? 0, {
      atMost: TRANSACTIONS_AIM,
    }),
    row(`${chats}: statements a message`, '', (_, n) => counts[n]?.statements ?? 0),
  ];
  console.log(`The store's verbs of a plain message, on both databases in turns\n`);
  if (server === null) console.log(`${missing}: only SQLite is measured\n`);
  console.log(`${table(server ? ['PostgreSQL', 'SQLite'] : ['SQLite'], rows, server ? null : undefined)}\n`);
  for (const { store } of subjects) await store.close();
}

const folder = await mkdtemp(join(tmpdir(), 'coterie-bench-stores-'));
const server = missing === null ? await startPostgres({ fsync: true }) : null;
try {
  await main(server);
} finally {
  await server?.close();
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
}
