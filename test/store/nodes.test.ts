/** The nodes of a store on a real PostgreSQL, each on a connection of its own. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { createZone } from '../../src/core/dates.js';
import { type Nodes, soleLeases } from '../../src/core/node.js';
import type { Store } from '../../src/core/store.js';
import { stateOf } from '../../src/platforms.js';
import { connectPostgres } from '../../src/store/postgres/connection.js';
import { nodesOn } from '../../src/store/postgres/nodes.js';
import { valueStore } from '../../src/store/values.js';
import { describeWithPostgres, type PostgresServer, startPostgres } from '../harness/postgres.js';
import { startWire } from '../harness/wire.js';
import { MIGRATIONS, silentLog } from './place.js';

const LONG = 60_000;
const A = { name: 'a', token: 'one' };
const B = { name: 'b', token: 'two' };
const ALL = ['channel:test', 'jobs'];

describeWithPostgres('nodes of a store', () => {
  let server: PostgresServer;
  let opened: Nodes[];
  let url: string;
  let [a, b]: Nodes[] = [];
  beforeAll(async () => {
    server = await startPostgres({ tcp: true });
  });
  afterAll(() => server.close());
  beforeEach(async () => {
    url = await server.newDatabase();
    const options = { url, connections: 3, clock: systemClock, log: silentLog, sqliteMigrations: MIGRATIONS };
    opened = [nodesOn(await connectPostgres(options)), nodesOn(await connectPostgres(options))];
    [a, b] = opened;
  });
  afterEach(() => Promise.all(opened.map((each) => each.close())));
  /** As if that much time had passed for the database. */
  const runOut = () => server.query('update node set until = 0; update lease set until = 0', url);
  const on = (which: Nodes | undefined) => which as Nodes;
  const wish = (leases = ALL) => ({
    leases,
    shared: leases.filter((each) => each.startsWith('channel:')),
  });
  /** What it holds now, each with its fence. */
  const held = async (which: Nodes | undefined, node: typeof A, leases = ALL, leaseMs = LONG) => {
    const kept = await on(which).keep(node, wish(leases), leaseMs);
    return kept?.held.map(({ name, fence }) => `${name} ${fence}`).sort();
  };
  const join = (leaseMs = LONG) =>
    Promise.all([on(a).join(A, '1.0', leaseMs), on(b).join(B, '1.0', leaseMs)]);

  it('a name is one living process, and the same process may come again', async () => {
    expect(await on(a).join(A, '1.0', LONG)).toBeNull();
    expect(await on(b).join({ name: 'a', token: 'other' }, '1.0', LONG)).toMatchObject({
      name: 'a',
      version: '1.0',
    });
    expect(await on(b).join(A, '1.1', LONG)).toBeNull();
    expect(await on(a).living()).toMatchObject([{ name: 'a', version: '1.1', holds: [] }]);
    await runOut();
    expect(await on(a).living()).toEqual([]);
    expect(await on(b).join({ name: 'a', token: 'other' }, '1.0', LONG)).toBeNull();
    expect(await held(a, A)).toBeUndefined();
  });

  it('each lease is one’s until it runs out; a fence grows with each holder', async () => {
    await join();
    expect(await held(a, A, ['jobs'])).toEqual(['jobs 1']);
    expect(await held(b, B)).toEqual(['channel:test 1']);
    expect(await on(a).keep(A, wish(), LONG)).toMatchObject({
      held: [{ name: 'jobs', node: 'a' }],
      others: [{ name: 'channel:test', node: 'b', fence: 1 }],
      asked: null,
    });
    expect(await on(a).living()).toMatchObject([
      { name: 'a', holds: ['jobs'] },
      { name: 'b', holds: ['channel:test'] },
    ]);
    await runOut();
    await on(b).join(B, '1.0', LONG);
    expect(await held(b, B)).toEqual(['channel:test 2', 'jobs 2']);
    expect(await held(a, A)).toEqual([]);
  });

  it('without a wish, it keeps what it holds; with one, it gives up the rest', async () => {
    await join();
    await held(a, A);
    expect((await on(a).keep(A, null, LONG))?.held.map(({ name }) => name).sort()).toEqual(ALL);
    expect(await on(b).keep(B, null, LONG)).toMatchObject({ held: [] });
    expect(await held(a, A, ['jobs'])).toEqual(['jobs 1']);
    expect(await held(b, B)).toEqual(['channel:test 2']);
  });

  it('what one gives up is free at once', async () => {
    await join();
    await held(a, A);
    await on(a).leave(A);
    expect(await on(b).living()).toMatchObject([{ name: 'b' }]);
    expect(await held(b, B)).toEqual(['channel:test 2', 'jobs 2']);
    expect(await held(b, B)).toEqual(['channel:test 2', 'jobs 2']);
  });

  it('what ran out at another is told of as taken over, what was given up or is its own is not', async () => {
    const takenOver = async (which: Nodes | undefined, node: typeof A) => {
      const kept = await on(which).keep(node, wish(), LONG);
      return kept?.held
        .filter(({ isTakenOver }) => isTakenOver)
        .map(({ name }) => name)
        .sort();
    };
    await join();
    expect(await takenOver(a, A)).toEqual([]);
    await server.query('update lease set until = 1', url);
    expect(await takenOver(b, B)).toEqual(ALL);
    expect(await takenOver(b, B)).toEqual([]);
    await server.query('update lease set until = 1', url);
    expect(await takenOver(b, B)).toEqual([]);
    await on(b).leave(B);
    expect(await takenOver(a, A)).toEqual([]);
  });

  it('of many who want them at once, one holds each', async () => {
    const many = Array.from({ length: 8 }, (_, n) => ({ name: `n${n}`, token: `t${n}` }));
    await Promise.all(many.map((node, n) => on([a, b][n % 2]).join(node, '1.0', LONG)));
    const kept = await Promise.all(many.map((node, n) => on([a, b][n % 2]).keep(node, wish(), LONG)));
    expect(kept.flatMap((each) => each?.held.map(({ name }) => name)).sort()).toEqual(ALL);
  });

  it('one that has fewer channels asks for the last one of the other, once it has lived for a lease', async () => {
    const channels = ['channel:one', 'channel:two', 'channel:three', 'jobs'];
    await join();
    await held(a, A, channels);
    const bare = await on(b).keep(B, wish(channels), LONG);
    expect([bare?.held, (await on(a).keep(A, wish(channels), LONG))?.asked]).toEqual([[], null]);
    await server.query('update node set since = 0', url);
    await held(b, B, channels);
    expect((await on(a).keep(A, null, LONG))?.asked).toBe('channel:three');
    await on(a).hand(A, 'channel:three', LONG);
    expect(await held(b, B, channels)).toEqual(['channel:three 2']);
    // One more would make it the richer one.
    expect(await on(a).keep(A, wish(channels), LONG)).toMatchObject({ asked: null });
    expect(await held(a, A, channels)).toEqual(['channel:one 1', 'channel:two 1', 'jobs 1']);
  });

  it('nothing is handed to one that asked and died', async () => {
    await join();
    const channels = ['channel:one', 'channel:two'];
    await held(a, A, channels);
    await server.query('update node set since = 0', url);
    await held(b, B, channels);
    await on(b).leave(B);
    expect((await on(a).keep(A, null, LONG))?.asked).toBeNull();
    await on(a).hand(A, 'channel:two', LONG);
    expect(await held(a, A, channels)).toEqual(['channel:one 1', 'channel:two 1']);
  });

  it('one that stands still while it prolongs its leases does not stop the others', async () => {
    await join();
    const address = new URL(server.overTcp(url));
    let stood = () => {};
    const stands = new Promise<void>((resolve) => {
      stood = resolve;
    });
    const wire = await startWire(Number(address.port), (sent) => {
      if (!sent.includes('update node')) return;
      wire.hold();
      stood();
    });
    address.port = String(wire.port);
    const options = { connections: 3, clock: systemClock, log: silentLog, sqliteMigrations: MIGRATIONS };
    const still = nodesOn(
      await connectPostgres({ ...options, url: address.href, stillMs: 300, waitMs: 0, answerMs: 5_000 }),
    );
    const keeping = expect(still.keep(A, wish(), LONG)).rejects.toThrow('does not answer');
    await stands;
    const began = performance.now();
    expect(await held(b, B)).toEqual(['channel:test 1', 'jobs 1']);
    expect(performance.now() - began).toBeLessThan(3_000);
    await wire.heal();
    await keeping;
    await still.close();
    await wire.close();
  });

  it('a lease is counted from when it was the node’s turn', async () => {
    await join();
    const other = server.query(
      `begin; select pg_advisory_xact_lock(hashtext('coterie.nodes')); select pg_sleep(0.5); commit`,
      url,
    );
    const isWaited = `select 1 from pg_locks where locktype = 'advisory' and granted`;
    await expect.poll(() => server.query(isWaited, url)).toHaveLength(1);
    const began = performance.now();
    let after = 0;
    await on(a).keep(A, wish(), LONG, () => {
      after = performance.now() - began;
    });
    expect(after).toBeGreaterThan(100);
    await other;
  });

  it('only the holder of a lease notes what a channel keeps, and not with a fence that fell behind', async () => {
    await join();
    await held(a, A);
    const options = { url, connections: 3, clock: systemClock, log: silentLog, sqliteMigrations: MIGRATIONS };
    const database = await connectPostgres({ ...options, zone: createZone('UTC') });
    const values = valueStore(database);
    const note = (value: string, fence: number) =>
      values.setValues({ stateOf: 'test' }, new Map([['key', value]]), { lease: 'channel:test', fence });
    await note('first', 1);
    await on(a).leave(A);
    await expect(note('late', 1)).rejects.toThrow('another gateway may hold channel:test');
    await held(b, B);
    await expect(note('late', 1)).rejects.toThrow('another gateway may hold channel:test');
    let fence: number | null = 1;
    const leases = { ...soleLeases([], systemClock.now), fenceOf: () => fence };
    const channel = stateOf(values as unknown as Store, 'test', leases);
    const late = new Map([['key', 'late']]);
    await expect(channel.set(late)).rejects.toThrow('another gateway may hold channel:test');
    fence = null;
    await expect(channel.set(late), 'not even when it knows of its loss').rejects.toThrow('another gateway');
    await expect(channel.clear()).rejects.toThrow('another gateway');
    await note('second', 2);
    expect(await values.values({ stateOf: 'test' }, ['key'])).toEqual(new Map([['key', 'second']]));
    await database.close();
  });
});
