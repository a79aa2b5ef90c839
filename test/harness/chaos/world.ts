/** The world of a chaos run: gateways as processes, their database, platforms, model and Redis, with wires between them. */
import { spawnSync } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { stringify } from 'yaml';
import { type FakeEmbeddings, startFakeEmbeddings } from '../../fakes/embeddings.js';
import { type FakeModel, startFakeModel } from '../../fakes/model.js';
import { type RedisServer, redisIsInstalled, startRedis } from '../../fakes/redis.js';
import { discordPlatform } from '../discord.js';
import { type Home, makeHome, type Running, run } from '../gateway.js';
import { databaseOf, type PostgresServer, startPostgres } from '../postgres.js';
import { pause } from '../random.js';
import { telegramPlatform } from '../telegram-platform.js';
import { startWire, type Wire } from '../wire.js';
import type { FaultSpan } from './account.js';
import { type Platforms, tokensIn } from './people.js';

export interface WorldOptions {
  /** Of the checkout, with the compiled gateway in `dist`. */
  root: string;
  gateways: number;
  leaseMs: number;
  logs?: string | undefined;
  say(line: string): void;
}

export interface Gateway {
  name: string;
  running: Running | null;
  /** Stopped by SIGSTOP. */
  isFrozen: boolean;
  wires: { postgres: Wire; telegram: Wire; discord: Wire };
}

export type World = Awaited<ReturnType<typeof makeWorld>>;

/** Small file systems, which only root can mount. */
const POSTGRES_MB = 256;
const DATA_MB = 256;
const RESTARTS_AFTER_MS = 500;

export async function makeWorld(options: WorldOptions) {
  const closers: (() => unknown)[] = [];
  /** The last that was made goes first. */
  async function close(): Promise<void> {
    for (let next = closers.pop(); next !== undefined; next = closers.pop()) await next();
  }
  try {
    return { ...(await worldOf(options, closers)), close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function worldOf({ root, gateways, leaseMs, logs, say }: WorldOptions, closers: (() => unknown)[]) {
  function kept<Made extends { close(): unknown }>(made: Made): Made {
    closers.push(() => made.close());
    return made;
  }
  const folder = mkdtempSync(join(tmpdir(), 'coterie-chaos-'));
  // PostgreSQL, which has another account, must come to its table space.
  chmodSync(folder, 0o711);
  closers.push(() => rmSync(folder, { recursive: true, force: true }));
  const disks = {
    postgres: mounted(join(folder, 'tablespace'), POSTGRES_MB),
    data: mounted(join(folder, 'data'), DATA_MB),
  };
  closers.push(() => {
    for (const disk of Object.values(disks)) if (disk !== null) spawnSync('umount', [disk]);
  });
  const server = kept(await startPostgres({ tcp: true }));
  const database = await server.emptyDatabase();
  if (disks.postgres !== null) await moveTo(server, database, disks.postgres);
  const platforms: Platforms = {
    telegram: kept(await telegramPlatform()),
    discord: kept(await discordPlatform()),
  };
  const model = kept(await startFakeModel({ keep: 20 }));
  const embeddings = kept(await startFakeEmbeddings({ keep: 1 }));
  const redis = redisIsInstalled() ? kept(await startRedis()) : null;
  const home = await makeHome({});
  closers.push(() => home.remove());
  const sent = new Map<string, Set<string>>();
  const effects = join(folder, 'effects');
  writeFileSync(effects, '');

  const all: Gateway[] = [];
  for (let n = 1; n <= gateways; n++) {
    const name = `n${n}`;
    const note = (bytes: Buffer) => {
      for (const token of tokensIn(bytes.toString('latin1')))
        sent.set(token, (sent.get(token) ?? new Set()).add(name));
    };
    const wires = {
      postgres: kept(await startWire(portOf(server.overTcp(database)))),
      telegram: kept(await startWire(portOf(`${platforms.telegram.config.api_root}`), note)),
      discord: kept(await startWire(portOf(`${platforms.discord.config.api_root}`), note)),
    };
    all.push({ name, running: null, isFrozen: false, wires });
    const config = configOf({
      root,
      folder,
      leaseMs,
      name,
      wires,
      platforms,
      model,
      embeddings,
      redis,
      effects,
    });
    const url = through(server.overTcp(database), wires.postgres);
    await home.write(`${name}.yaml`, stringify({ ...config, store: { url, wait_seconds: 60 } }));
  }
  const processes = supervisor({ root, home, all, say, platforms, logs });
  closers.push(() => processes.endAll());
  if (redis !== null) {
    const worker = run(home, ['worker', '-c', 'n1.yaml'], {}, join(root, 'dist/main.js'));
    closers.push(() => worker.stop('SIGKILL'));
  }

  return {
    ...{ server, folder, disks, platforms, model, redis, effects, leaseMs, say },
    faults: [] as FaultSpan[],
    gateways: all,
    ...processes,
    query: <Row>(sql: string) => server.query<Row>(sql, database),
    sender: (token: string) => [...(sent.get(token) ?? [])],
    /** Whatever a fault may have left. */
    async heal() {
      platforms.telegram.telegram.heal();
      for (const { wires } of all) for (const wire of Object.values(wires)) await wire.heal();
    },
  };
}

interface Supervised {
  root: string;
  home: Home;
  all: readonly Gateway[];
  platforms: Platforms;
  logs: string | undefined;
  say(line: string): void;
}

/** Starts gateways, and starts anew what ends by itself. */
function supervisor({ root, home, all, platforms, logs, say }: Supervised) {
  const ends: string[] = [];
  let isOver = false;
  const environment = {
    ...{ ...platforms.telegram.environment, ...platforms.discord.environment },
    NODE_OPTIONS: `--import ${pathToFileURL(join(root, 'test/harness/moving-clock.mjs'))}`,
  };

  function start(gateway: Gateway): Running {
    const running = run(
      home,
      ['start', '-c', `${gateway.name}.yaml`],
      environment,
      join(root, 'dist/main.js'),
    );
    gateway.running = running;
    void running.exited.then(async (code) => {
      if (logs !== undefined) appendFileSync(join(logs, `${gateway.name}.log`), running.err());
      if (gateway.running !== running || isOver) return;
      gateway.running = null;
      ends.push(`${gateway.name} ended with ${code}: ${running.err().trim().split('\n').at(-1)}`);
      say(`  ${ends.at(-1)}`);
      await pause(RESTARTS_AFTER_MS);
      if (gateway.running === null && !isOver) start(gateway);
    });
    return running;
  }

  /** It stays down until it is started. */
  async function end(gateway: Gateway, signal: 'SIGKILL' | 'SIGTERM'): Promise<number | null> {
    const { running } = gateway;
    gateway.running = null;
    return running === null ? null : running.stop(signal);
  }

  return {
    ...{ ends, start, end },
    async endAll() {
      isOver = true;
      await Promise.all(all.map((gateway) => end(gateway, 'SIGKILL')));
    },
  };
}

interface Ingredients {
  root: string;
  folder: string;
  leaseMs: number;
  name: string;
  wires: Gateway['wires'];
  platforms: Platforms;
  model: FakeModel;
  embeddings: FakeEmbeddings;
  redis: RedisServer | null;
  effects: string;
}

function configOf(of: Ingredients): object {
  const { root, folder, leaseMs, name, wires, platforms, model, embeddings, redis, effects } = of;
  const command = [join(root, 'test/harness/effects.mjs'), effects];
  const vectors = {
    ...{ backend: 'redis', base_url: embeddings.url, model: 'fake' },
    ...{ redis_url: redis?.url, timeout_seconds: 2 },
  };
  return {
    ...{ data_dir: join(folder, 'data'), groups_dir: join(folder, 'groups'), timezone: 'Europe/Berlin' },
    node: { name, lease_seconds: leaseMs / 1_000 },
    ...{ board: { port: 0 }, log: { format: 'json', level: 'info' }, shutdown_seconds: 5 },
    access: { direct: 'open', groups: 'open' },
    conversation: { debounce_ms: 0, compact_after_messages: 60, keep_recent_messages: 20 },
    model: { base_url: model.url, name: 'scripted', timeout_seconds: 3 },
    tools: { allow: ['memory', 'mcp'] },
    mcp: { servers: { effects: { command: process.execPath, args: command, safe: ['mark'] } } },
    ...(redis && { embeddings: vectors, redis: { url: redis.url } }),
    channels: {
      telegram: { ...platforms.telegram.config, api_root: `http://127.0.0.1:${wires.telegram.port}` },
      discord: {
        ...platforms.discord.config,
        api_root: through(`${platforms.discord.config.api_root}`, wires.discord),
      },
    },
  };
}

const portOf = (url: string) => Number(new URL(url).port);

function through(url: string, wire: Wire): string {
  const led = new URL(url);
  led.port = String(wire.port);
  return String(led);
}

/** A file system of this size in memory; null if it cannot be mounted. */
function mounted(folder: string, megabytes: number): string | null {
  mkdirSync(folder);
  if (process.getuid?.() !== 0) return null;
  const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', folder]);
  return status === 0 ? folder : null;
}

async function moveTo(server: PostgresServer, database: string, folder: string): Promise<void> {
  const socket = new URL(database).searchParams.get('host') ?? '';
  const { uid, gid } = statSync(join(socket, 'data'));
  chownSync(folder, uid, gid);
  await server.query(`create tablespace small location '${folder}'`);
  await server.query(`alter database ${databaseOf(database)} set tablespace small`);
}
