/**
 * PostgreSQL that is away, restarts, breaks off in a commit, or may only be read: what was asked for is done once, and
 * nothing that was told as done is lost.
 */
import { createServer, connect as dial, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import type { Fault } from '../../src/core/errors.js';
import type { Store } from '../../src/core/store.js';
import { connectPostgres } from '../../src/store/postgres/connection.js';
import {
  ANN,
  begun,
  CHAT,
  chatAt,
  finish,
  message,
  NOW,
  receive,
  waitingTexts,
} from '../contract/store/words.js';
import {
  databaseOf,
  describeWithPostgres,
  type PostgresServer,
  type Stop,
  startPostgres,
} from '../harness/postgres.js';
import { MIGRATIONS, openPostgres, type PostgresPlace } from './place.js';

const WAYS: Stop[] = ['fast', 'immediate', 'kill'];
const TOKENS = { inputTokens: 1, outputTokens: 0 };
const numbers = (count: number) => Array.from({ length: count }, (_, n) => n);
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** A line to the server that breaks at a commit: before the server has it, or before its answer comes. */
async function breakingLine(to: number) {
  let breaks: 'before' | 'after' | null = null;
  let broken = 0;
  const sockets = new Set<Socket>();
  const line = createServer((client) => {
    const server = dial(to, '127.0.0.1');
    const both = [client, server];
    const end = () => both.forEach((socket) => void socket.destroy());
    for (const socket of both) {
      sockets.add(socket);
      socket.on('error', end).on('close', end);
    }
    let isDeaf = false;
    client.on('data', (data) => {
      if (breaks === null || !data.includes('commit\0')) return void server.write(data);
      isDeaf = true;
      broken++;
      if (breaks === 'after') server.write(data);
      else end();
      breaks = null;
    });
    server.on('data', (data) => {
      if (isDeaf) end();
      else client.write(data);
    });
  });
  await new Promise<void>((resolve) => line.listen(0, '127.0.0.1', resolve));
  const address = line.address();
  return {
    port: typeof address === 'object' ? (address?.port ?? 0) : 0,
    breakAtCommit(when: 'before' | 'after') {
      breaks = when;
    },
    broken: () => broken,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => line.close(resolve));
    },
  };
}

describeWithPostgres('PostgreSQL', () => {
  let server: PostgresServer;
  let place: PostgresPlace;
  let store: Store;
  let said: { event: string; level: string }[];
  const log = (level: string) => (given: object) => void said.push({ event: '', ...given, level });
  const logged = {
    debug() {},
    info: log('info'),
    warn: log('warn'),
    error: log('error'),
  };
  beforeAll(async () => {
    server = await startPostgres({ tcp: true });
  });
  afterAll(() => server.close());
  beforeEach(async () => {
    said = [];
    place = await openPostgres(server);
    store = await place.open({ log: logged });
  });
  afterEach(() => place.remove());

  const spend = (of: Store) =>
    of.spend({ room: CHAT, personaId: 'default', personId: ANN.id, usage: TOKENS, now: NOW });
  const spent = async (of = store) =>
    (await of.usage({ chatId: CHAT, personId: ANN.id, since: NOW, now: NOW })).person.tokens;
  const events = () => said.map(({ event }) => event);

  describe.each(WAYS)('restarted (%s)', (how) => {
    it('does each write once that was under way or is asked for meanwhile, and says so once', async () => {
      const other = await place.open();
      let isOver = false;
      let asked = 0;
      let acknowledged = 0;
      const writing = [store, other].map(async (one) => {
        while (!isOver) {
          const count = 1 + (asked % 5);
          asked += count;
          await Promise.all(numbers(count).map(() => spend(one)));
          acknowledged += count;
        }
      });
      for (let times = 0; times < 3; times++) {
        const before = acknowledged;
        await expect.poll(() => acknowledged - before, { timeout: 10_000, interval: 5 }).toBeGreaterThan(10);
        await server.stop(how);
        await pause(60);
        await server.start();
      }
      isOver = true;
      await Promise.all(writing);
      expect(await spent()).toBe(asked);
      expect(events().filter((event) => event === 'store unavailable').length).toBeLessThanOrEqual(3);
      expect(events().at(-1)).toBe('store back');
    });

    it('goes on in the middle of a turn, whose claim still holds', async () => {
      await receive(store, [message('1', 'hi')]);
      const turn = await begun(store, 't1');
      await server.stop(how);
      const step = store.addStep(turn.claim, 't1', { kind: 'call', callId: 'c' }, NOW);
      const chat = store.chat(CHAT);
      const room = store.readRoom(CHAT, 'other', NOW);
      await server.start();
      expect(await step).toBe(true);
      expect(await chat).toMatchObject({ id: CHAT });
      expect(await room).toBeNull();
      expect(await finish(store, turn, 't1')).toBe('finished');
    });

    it('tells again what another process writes', async () => {
      const other = await place.open();
      let heard = 0;
      const end = store.watch(() => heard++);
      await receive(other, [message('1', 'hi')]);
      await expect.poll(() => heard, { timeout: 10_000 }).toBeGreaterThan(0);
      await server.stop(how);
      await server.start();
      await expect
        .poll(
          async () => {
            const before = heard;
            await spend(other);
            await pause(200);
            return heard > before;
          },
          { timeout: 20_000 },
        )
        .toBe(true);
      end();
    });
  });

  describe('that breaks off in a commit', () => {
    let line: Awaited<ReturnType<typeof breakingLine>>;
    let far: Store;
    beforeEach(async () => {
      const direct = new URL(server.overTcp(place.url));
      line = await breakingLine(Number(direct.port));
      direct.port = `${line.port}`;
      far = await place.open({ url: direct.href });
    });
    afterEach(() => line.close());

    it.each(['before', 'after'] as const)('%s the server has it: all is there, once', async (when) => {
      for (let n = 0; n < 5; n++) {
        line.breakAtCommit(when);
        const results = await Promise.all([
          receive(far, [message(`${n}`, `m${n}`), message(`${n}`, 'twice')]),
          receive(far, [message(`${n}`, `m${n}`, { chat: chatAt('test_2') })]),
          spend(far),
        ]);
        expect(results.slice(0, 2)).toMatchObject([
          { messages: 1, duplicates: 1 },
          { messages: 1, duplicates: 0 },
        ]);
        expect(line.broken()).toBe(n + 1);
      }
      expect(await spent()).toBe(5);
      expect(await waitingTexts(store)).toEqual(numbers(5).map((n) => `m${n}`));
      const entries = await store.journal({ after: 0, most: 100 });
      expect(entries).toHaveLength(10);
    });

    it('answers rightly where somebody removed what a process leaves to be recognised by', async () => {
      await spend(far);
      await server.query('delete from writer', place.url);
      line.breakAtCommit('after');
      await spend(far);
      expect(await spent()).toBe(2);
    });
  });

  it('whose sessions are all ended is asked again', async () => {
    let isOver = false;
    let asked = 0;
    const writing = (async () => {
      for (; !isOver; asked++) await spend(store);
    })();
    const end = `select pg_terminate_backend(pid) from pg_stat_activity
      where datname = '${databaseOf(place.url)}' and pid <> pg_backend_pid()`;
    for (let times = 0; times < 10; times++) {
      await pause(20);
      await server.query(end);
    }
    isOver = true;
    await writing;
    expect(await spent()).toBe(asked);
  });

  it('that may only be read for a while is waited for', async () => {
    const name = databaseOf(place.url);
    const setTo = async (value: string) => {
      await server.query(`alter database ${name} set default_transaction_read_only = ${value}`);
      await server.query(`
        select pg_terminate_backend(pid) from pg_stat_activity
        where datname = '${name}' and pid <> pg_backend_pid()`);
    };
    await setTo('on');
    const received = receive(store, [message('1', 'hi')]);
    await expect.poll(events).toContain('store unavailable');
    expect(await store.chat(CHAT), 'reads are answered').toBeNull();
    await setTo('off');
    expect(await received).toMatchObject({ messages: 1 });
    expect(await waitingTexts(store)).toEqual(['hi']);
  });

  it('that is away for too long is told of, and the next call works', async () => {
    const lost: string[] = [];
    const brief = await place.open({ waitMs: 300, onLost: ({ code }) => lost.push(code) });
    await spend(brief);
    await server.stop('fast');
    try {
      await expect(spend(brief)).rejects.toMatchObject({
        code: 'store_unavailable',
        message: expect.stringMatching(/^postgres:\/\/[^@]*: PostgreSQL does not answer/),
      });
      expect(lost).toEqual(['store_unavailable']);
    } finally {
      await server.start();
    }
    await spend(brief);
    expect(await spent(brief)).toBe(2);
  });

  it('that is away does not hold up whoever closes the store, and what was asked for fails', async () => {
    const closing = await place.open();
    await spend(closing);
    await server.stop('fast');
    try {
      const failed = spend(closing).catch((error: Fault) => error.code);
      await pause(100);
      const before = Date.now();
      await closing.close();
      expect(Date.now() - before).toBeLessThan(3_000);
      expect(await failed).toBe('store_unavailable');
    } finally {
      await server.start();
    }
  });

  it('that has no more connections to give is waited for, and says why', async () => {
    await server.query(`create role narrow login superuser password 'narrow' connection limit 0`);
    const url = server.overTcp(place.url, 'narrow', 'narrow');
    try {
      // The limit is for those who are not superusers.
      await server.query('alter role narrow nosuperuser');
      const given = { url, clock: systemClock, sqliteMigrations: MIGRATIONS, waitMs: 300 };
      await expect(connectPostgres(given)).rejects.toMatchObject({
        code: 'store_unavailable',
        message: expect.stringContaining('connections'),
      });
    } finally {
      await server.query('drop role narrow');
    }
  });

  it('that holds what this one needs in another session is waited for', async () => {
    const held = `select pg_advisory_xact_lock(hashtextextended('${CHAT}', 0)), pg_sleep(0.5)`;
    const holding = server.query(held, place.url);
    await pause(100);
    const before = Date.now();
    const received = receive(store, [message('1', 'hi')]);
    await receive(await place.open(), [message('1', 'ho', { chat: chatAt('test_2') })]);
    expect(Date.now() - before, 'another chat does not wait').toBeLessThan(350);
    expect(await received).toMatchObject({ messages: 1 });
    await holding;
  });

  describe('is refused', () => {
    const refused = async (url: string) => {
      const given = { url, clock: systemClock, sqliteMigrations: MIGRATIONS, waitMs: 0 };
      return expect(connectPostgres(given)).rejects;
    };

    it('that compares texts by a language, though its C is the same', async () => {
      const url = await server.emptyDatabase('en');
      await (await refused(url)).toMatchObject({
        code: 'configuration',
        message: expect.stringMatching(/^store\.url \(.*\): texts must be compared by bytes/),
      });
      await server.dropDatabase(url);
    });

    it('that keeps texts in another encoding', async () => {
      const name = 'ascii';
      await server.query(`create database ${name} template template0 encoding 'SQL_ASCII'`);
      const url = place.url.replace(databaseOf(place.url), name);
      await (await refused(url)).toMatchObject({
        code: 'configuration',
        message: expect.stringContaining('UTF8, not SQL_ASCII'),
      });
      await server.dropDatabase(url);
    });
  });
});
