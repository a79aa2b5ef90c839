/** The connection to PostgreSQL when something breaks in the middle: cut commits, servers that hang, poolers in between. */
import { execFileSync } from 'node:child_process';
import { createServer, connect as dial, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { run, tell, value } from '../../src/store/db.js';
import {
  connectPostgres,
  type PostgresDatabase,
  type PostgresOptions,
} from '../../src/store/postgres/connection.js';
import { describeWithPostgres, type PostgresServer, startPostgres } from '../harness/postgres.js';

const PUT = 'insert into setting (key, value) values (?, ?)';
const ADD = 'update setting set value = value || ? where key = ?';

const opened: PostgresDatabase[] = [];
const servers: Server[] = [];
async function connect(url: string, options: Partial<PostgresOptions> = {}): Promise<PostgresDatabase> {
  const database = await connectPostgres({ url, clock: systemClock, sqliteMigrations: '', ...options });
  opened.push(database);
  return database;
}
afterEach(async () => {
  for (const database of opened.splice(0)) await database.close();
  for (const server of servers.splice(0)) await new Promise((resolve) => server.close(resolve));
});

async function listening(serve: (socket: Socket) => void): Promise<number> {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    serve(socket);
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

/** Between the store and the server: `cut` ends the store's connections, and the server learns of it only at `end`. */
async function proxyTo(url: string) {
  const { port: number, searchParams } = new URL(url);
  const pairs: { here: Socket; there: Socket }[] = [];
  const port = await listening((here) => {
    const there = dial(join(searchParams.get('host') ?? '', `.s.PGSQL.${number}`));
    there.on('error', () => {});
    pairs.push({ here, there });
    here.on('data', (data) => there.write(data));
    there.on('data', (data) => !here.destroyed && here.write(data));
    here.on('end', () => there.end());
    there.on('close', () => here.destroy());
  });
  const address = new URL(url);
  address.searchParams.delete('host');
  address.host = `127.0.0.1:${port}`;
  return {
    url: address.href,
    cut: () => {
      for (const { here } of pairs) here.destroy();
    },
    end: () => {
      for (const { there } of pairs) there.destroy();
    },
  };
}

const until = async (holds: () => Promise<boolean> | boolean) => {
  for (let tries = 0; !(await holds()); tries++) {
    if (tries > 500) throw new Error('it did not come about');
    await systemClock.sleep(10);
  }
};

describeWithPostgres('PostgreSQL, when something breaks,', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres({ tcp: true });
  });
  afterAll(() => server.close());

  const signal = (pid: number, name: 'STOP' | 'CONT') => execFileSync('kill', [`-${name}`, `${pid}`]);

  it('runs a write once whose transaction stands still in the server while its connection is cut', async () => {
    const url = await server.newDatabase();
    const proxy = await proxyTo(url);
    const database = await connect(proxy.url);
    await database.write([], () => run(PUT, 'cut', ''));
    const [writer] = await server.query<{ pid: number }>(
      `select pid from pg_stat_activity where datname = current_database() and query = 'commit'`,
      url,
    );
    const pid = writer?.pid ?? 0;
    signal(pid, 'STOP');
    try {
      const writing = database.write([], () => tell(ADD, 'x', 'cut'));
      await systemClock.sleep(100);
      proxy.cut();
      await writing;
    } finally {
      signal(pid, 'CONT');
    }
    await systemClock.sleep(300);
    proxy.end();
    expect(await database.query('select value from setting')).toEqual([{ value: 'x' }]);
  });

  it('writes on what was committed when it got its lock, whatever the database prefers', async () => {
    const url = await server.newDatabase();
    const name = new URL(url).pathname.slice(1);
    await server.query(`alter database ${name} set default_transaction_isolation = 'repeatable read'`);
    try {
      const [one, other] = [await connect(url), await connect(url)];
      const insert = function* () {
        const n = (yield* value<number>('select count(*) from setting')) ?? 0;
        yield* run(PUT, `${n}`, '');
      };
      const writes = [one, other].flatMap((database) =>
        Array.from({ length: 10 }, () => async () => {
          await database.write('test_1', insert);
        }),
      );
      await Promise.all(writes.map((write) => write()));
      expect(await one.query('select count(*) as n from setting')).toEqual([{ n: 20 }]);
      const level = () => value<string>('show transaction_isolation');
      expect([await one.write([], level), await one.settled(level)]).toEqual(Array(2).fill('read committed'));
    } finally {
      await server.query(`alter database ${name} reset default_transaction_isolation`);
    }
  });

  it('gives up a statement whose answer does not come, and reads on another connection', async () => {
    const database = await connect(await server.newDatabase(), { answerMs: 300, waitMs: 5_000 });
    const pid = (await database.look(() => value<number>('select pg_backend_pid()'))) ?? 0;
    signal(pid, 'STOP');
    try {
      expect(await database.look(() => value<number>('select 1'))).toBe(1);
    } finally {
      signal(pid, 'CONT');
    }
  });

  it('reads again after a statement failed on the shared connection', async () => {
    const database = await connect(await server.newDatabase());
    const backend = () => database.look(() => value<number>('select pg_backend_pid()'));
    const before = await backend();
    await expect(database.look(() => value('select 1 / (? - 1)', 1))).rejects.toThrow('division by zero');
    expect(await backend()).not.toBe(before);
  });

  it('says so when the server ends a statement that takes too long, and does what was asked beside it', async () => {
    const database = await connect(await server.newDatabase());
    const slow = database.write([], function* () {
      yield* value(`select set_config('statement_timeout', '50', true)`);
      yield* value('select pg_sleep(5)');
    });
    const beside = database.write([], () => run(PUT, 'beside', ''));
    await expect(slow).rejects.toMatchObject({
      code: 'internal',
      message: expect.stringMatching(/^postgres:.*: the server ended a statement that took longer than 60 s/),
    });
    expect(await beside).toBe(1);
    expect(await database.look(() => value('select key from setting'))).toBe('beside');
  });

  it('does not take its own busy connections for a lost database', async () => {
    const lost: unknown[] = [];
    const options = { connections: 3, waitMs: 100, onLost: (fault: unknown) => lost.push(fault) };
    const database = await connect(await server.newDatabase(), options);
    await database.look(() => value('select 1'));
    const slow = [1, 2].map(() => database.read(() => value('select pg_sleep(6)')));
    await expect(database.read(() => value('select 1'))).rejects.toMatchObject({
      message: expect.stringContaining('all connections are in use'),
    });
    expect(lost).toEqual([]);
    await Promise.all(slow);
  });

  it('closes while its server hangs', async () => {
    const url = await server.newDatabase();
    const database = await connect(url);
    await database.write([], () => run(PUT, 'here', ''));
    database.watch(() => {});
    const backends = (which: string) =>
      server.query<{ pid: number }>(
        `select pid from pg_stat_activity where datname = current_database() and ${which} and pid <> pg_backend_pid()`,
        url,
      );
    await until(async () => (await backends(`query like 'listen coterie%'`)).length > 0);
    const pids = await backends('true');
    for (const { pid } of pids) signal(pid, 'STOP');
    try {
      await database.close();
    } finally {
      for (const { pid } of pids) signal(pid, 'CONT');
    }
  });

  it('wants a password, and the address has none', async () => {
    const url = server.overTcp(await server.newDatabase()).replace(/:[^:@]*@/, '@');
    await expect(connect(url, { waitMs: 300 })).rejects.toMatchObject({
      code: 'configuration',
      message: expect.stringMatching(/^store\.url \(.*password must be a string/),
    });
  });
});

describe('a server that will not do', () => {
  const failing = async (serve: (socket: Socket) => void, query = '') => {
    const port = await listening(serve);
    return connect(`postgres://ann:hush@127.0.0.1:${port}/chats${query}`, { waitMs: 300 });
  };

  /** An error of the server, as it comes over the wire. */
  const errorOf = (code: string, text: string) => {
    const fields = Buffer.from(`SFATAL\0VFATAL\0C${code}\0M${text}\0\0`);
    const length = Buffer.alloc(4);
    length.writeInt32BE(fields.length + 4);
    return Buffer.concat([Buffer.from('E'), length, fields]);
  };

  it('is PgBouncer, which refuses settings of the connection', async () => {
    const refusal = 'unsupported startup parameter: idle_in_transaction_session_timeout';
    const refused = failing((socket) => socket.once('data', () => socket.end(errorOf('08P01', refusal))));
    await expect(refused).rejects.toMatchObject({
      code: 'configuration',
      message: expect.stringMatching(
        /^store\.url \(postgres:\/\/127.0.0.1:\d+\/chats\): .*not through PgBouncer$/,
      ),
    });
  });

  it('cannot encrypt, though the address wants it', async () => {
    const refused = failing((socket) => socket.once('data', () => socket.write('N')), '?sslmode=require');
    await expect(refused).rejects.toMatchObject({
      code: 'configuration',
      message: expect.stringContaining('does not support SSL'),
    });
  });

  it('is named with a certificate that is not there', async () => {
    const refused = failing(() => {}, '?sslmode=verify-full&sslrootcert=/nowhere/ca.pem');
    await expect(refused).rejects.toMatchObject({
      code: 'configuration',
      message: expect.stringContaining('/nowhere/ca.pem'),
    });
  });
});
