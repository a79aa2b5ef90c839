/**
 * A real PostgreSQL of a test file's own, in a temporary folder: on a Unix socket there, and on a loopback port where a test
 * wants one. Without an installed PostgreSQL, tests that need it are skipped with a message, or fail with
 * COTERIE_REQUIRE_SERVERS=1.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { chownSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import pg from 'pg';
import { describe } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { migratePostgres } from '../../src/store/migrate.js';
import { connectPostgres } from '../../src/store/postgres/connection.js';
import { quietLog } from './quiet.js';

const run = promisify(execFile);

const MIGRATIONS = fileURLToPath(new URL('../../migrations/postgres', import.meta.url));
const MIGRATIONS_OF_SQLITE = fileURLToPath(new URL('../../migrations/sqlite', import.meta.url));

const SUPERUSER = 'coterie';
const PASSWORD = 'only-for-tests';
/** Debian's packages put their programs beside the PATH, a folder for each version. */
const DEBIAN = '/usr/lib/postgresql';
/** Accounts that may run the server where the tests run as root, which it refuses. */
const UNPRIVILEGED = ['postgres', 'nobody'];
/** After its postmaster was killed, the server's other processes hold its memory until they notice. */
const STARTS_WITHIN_MS = 20_000;

const programs = findPrograms();
const account = accountToRun();
export const missing =
  programs === null
    ? 'PostgreSQL (initdb, postgres) is not installed'
    : account === null
      ? `PostgreSQL does not run as root, and there is no account ${UNPRIVILEGED.join(' or ')}`
      : null;

export const describeWithPostgres = missing === null ? describe : skipped(missing);

function skipped(why: string): typeof describe.skip {
  if (process.env.COTERIE_REQUIRE_SERVERS === '1') {
    throw new Error(`${why}, and COTERIE_REQUIRE_SERVERS=1 demands these tests`);
  }
  process.stderr.write(`${why}: the tests that need it are SKIPPED\n`);
  return describe.skip;
}

/** The folder of the newest version's programs; null if there is none. */
function findPrograms(): string | null {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a)) : [];
  const folders = [
    ...(process.env.PATH ?? '').split(delimiter),
    ...versions.map((version) => join(DEBIAN, version, 'bin')),
  ];
  return (
    folders.find((folder) => ['initdb', 'postgres'].every((name) => existsSync(join(folder, name)))) ?? null
  );
}

/** Whom to run the server as; `{}`: as ourselves, null: nobody can. */
function accountToRun(): { uid?: number; gid?: number } | null {
  if (process.getuid?.() !== 0) return {};
  const known = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'));
  for (const name of UNPRIVILEGED) {
    const [, , uid, gid] = known.find(([each]) => each === name) ?? [];
    if (uid !== undefined) return { uid: Number(uid), gid: Number(gid) };
  }
  return null;
}

/** fast: ends sessions; immediate: as a crash of the server; kill: SIGKILL of its first process. */
export type Stop = 'fast' | 'immediate' | 'kill';
const SIGNALS = { fast: 'SIGINT', immediate: 'SIGQUIT', kill: 'SIGKILL' } as const;

export interface PostgresServer {
  /** The URL, over the socket, of a database with the store's tables, all empty. */
  newDatabase(): Promise<string>;
  /** Nobody is connected to it any more: it may be emptied and be another test's, which takes a tenth of making one. */
  giveBack(url: string): void;
  /** The same without tables. `collation`: of ICU, such as `en`; default: by bytes. */
  emptyDatabase(collation?: string): Promise<string>;
  dropDatabase(url: string): Promise<void>;
  /** The same database over TCP, as this role with this password. Only with `tcp`. */
  overTcp(url: string, role?: string, password?: string): string;
  /** Runs statements as the superuser, in the database of the URL or in the server's own. */
  query<Row>(sql: string, url?: string): Promise<Row[]>;
  stop(how: Stop): Promise<void>;
  /** On the same data, socket and port again. */
  start(): Promise<void>;
  /** Stops it and removes its folder. */
  close(): Promise<void>;
}

export async function startPostgres({ tcp = false, fsync = false } = {}): Promise<PostgresServer> {
  if (missing !== null) throw new Error(missing);
  const folder = await mkdtemp(join(tmpdir(), 'coterie-pg-'));
  const data = join(folder, 'data');
  const port = tcp ? await freePort() : 5432;
  const options = { ...account, cwd: folder, env: { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' } };
  if (account?.uid !== undefined && account.gid !== undefined) chownSync(folder, account.uid, account.gid);
  const watchdog = await watchOver(folder);
  let server: ChildProcess | null = null;
  let said = '';
  let databases = 0;
  const free: string[] = [];
  let template: Promise<string> | null = null;

  async function initialise(): Promise<void> {
    const password = join(folder, 'password');
    await writeFile(password, PASSWORD, { mode: 0o644 });
    await run(
      join(programs ?? '', 'initdb'),
      [
        ...[
          '-D',
          data,
          '-U',
          SUPERUSER,
          '--pwfile',
          password,
          '--auth-local=trust',
          '--auth-host=scram-sha-256',
        ],
        ...['-E', 'UTF8', '--locale=C', '--no-sync', '--no-instructions'],
      ],
      options,
    );
  }

  async function startOnce(): Promise<boolean> {
    const settings = {
      unix_socket_directories: folder,
      listen_addresses: tcp ? '127.0.0.1' : '',
      port,
      fsync: fsync ? 'on' : 'off',
      full_page_writes: fsync ? 'on' : 'off',
      // Small, as several servers may run beside each other.
      shared_buffers: '32MB',
      max_wal_size: '256MB',
      max_connections: 200,
      autovacuum: 'off',
      jit: 'off',
      log_min_messages: 'error',
    };
    const args = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    const child = spawn(join(programs ?? '', 'postgres'), ['-D', data, ...args], {
      ...options,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    server = child;
    said = '';
    watchdog.runs(child.pid ?? null);
    return new Promise<boolean>((resolve, reject) => {
      child.stderr.setEncoding('utf8').on('data', (text: string) => {
        said = `${said}${text}`.slice(-20_000);
        if (/ready to accept (read-only )?connections/.test(said)) resolve(true);
      });
      child.once('error', reject);
      child.once('exit', () => {
        watchdog.runs(null);
        if (server === child) server = null;
        resolve(false);
      });
    });
  }

  async function start(): Promise<void> {
    const deadline = Date.now() + STARTS_WITHIN_MS;
    while (!(await startOnce())) {
      if (Date.now() > deadline) throw new Error(`PostgreSQL does not start: ${said}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  async function stop(how: Stop): Promise<void> {
    const child = server;
    if (child === null) return;
    const ended = new Promise((resolve) => child.once('close', resolve));
    child.kill(SIGNALS[how]);
    await ended;
  }

  const urlOf = (database: string) => `postgres://${SUPERUSER}@localhost:${port}/${database}?host=${folder}`;
  async function query<Row>(sql: string, url = urlOf('postgres')): Promise<Row[]> {
    const client = new pg.Client({ connectionString: url });
    client.on('error', () => {});
    await client.connect();
    try {
      return (await client.query(sql)).rows as Row[];
    } finally {
      await client.end();
    }
  }

  async function create(template: string, more = ''): Promise<string> {
    const name = `test_${++databases}`;
    await query(`create database ${name} template ${template} ${more}`);
    return urlOf(name);
  }

  try {
    await initialise();
    await start();
  } catch (error) {
    await watchdog.end();
    throw error;
  }
  return {
    query,
    start,
    stop,
    async newDatabase() {
      template ??= create('template0').then(async (url) => {
        await migrated(url);
        return databaseOf(url);
      });
      const last = free.pop();
      if (last === undefined) return create(await template);
      await query(EMPTY, last);
      return last;
    },
    giveBack: (url) => void free.push(url),
    emptyDatabase(collation) {
      return create('template0', collation && `locale_provider icu icu_locale '${collation}'`);
    },
    async dropDatabase(url) {
      await query(`drop database if exists ${databaseOf(url)} with (force)`);
    },
    overTcp: (url, role = SUPERUSER, password = PASSWORD) =>
      `postgres://${role}:${encodeURIComponent(password)}@127.0.0.1:${port}/${databaseOf(url)}`,
    async close() {
      await stop('immediate');
      await watchdog.end();
    },
  };
}

async function migrated(url: string): Promise<void> {
  const database = await connectPostgres({
    ...{ url, clock: systemClock, log: quietLog, sqliteMigrations: MIGRATIONS_OF_SQLITE },
  });
  try {
    await migratePostgres(database, MIGRATIONS);
  } finally {
    await database.close();
  }
}

/** Removes all rows, and begins all numbers anew. TRUNCATE would make all files anew. */
export const EMPTY = `
  do $$ declare name text; begin
    for name in select tablename from pg_tables where schemaname = 'public' and tablename <> 'migration' loop
      execute format('delete from %I', name);
    end loop;
    perform setval(oid, 1, false) from pg_class where relkind = 'S';
  end $$`;

/** The name of a URL's database. */
export function databaseOf(url: string): string {
  return new URL(url).pathname.slice(1);
}

/**
 * A shell that ends the server and removes its folder when this process has ended, however it did: it then reads the end of
 * its input, on which it is told which process the server is.
 */
async function watchOver(folder: string) {
  const script = 'while read -r line; do pid=$line; done; [ -z "$pid" ] || kill -QUIT "$pid"; rm -rf "$0"';
  const shell = spawn('/bin/sh', ['-c', script, folder], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  // It may have ended already, where the whole process group was killed.
  shell.stdin.on('error', () => {});
  const ended = new Promise<void>((resolve) => shell.once('close', () => resolve()));
  return {
    runs: (pid: number | null) => void shell.stdin.write(`${pid ?? ''}\n`),
    async end() {
      shell.stdin.end();
      await ended;
    },
  };
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('no free port');
  return address.port;
}
