/** The nodes of a store on a real PostgreSQL, each on a connection of its own. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import type { Nodes } from '../../src/core/node.js';
import { connectPostgres } from '../../src/store/postgres/connection.js';
import { nodesOn } from '../../src/store/postgres/nodes.js';
import { describeWithPostgres, type PostgresServer, startPostgres } from '../harness/postgres.js';
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
    server = await startPostgres();
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
  const held = async (which: Nodes | undefined, node: typeof A, leaseMs = LONG, leases = ALL) => {
    const kept = await on(which).keep(node, leases, leaseMs);
    return (
      kept && (kept.isHolder ? kept.leases.map(({ fence }) => fence) : kept.leases.map((each) => each.node))
    );
  };

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
    expect(await held(a, A)).toBeNull();
  });

  it('all leases are one’s or none, until they run out; a fence grows with each holder', async () => {
    for (const [which, node] of [
      [a, A],
      [b, B],
    ] as const)
      await on(which).join(node, '1.0', LONG);
    expect(await held(a, A, LONG, ['jobs'])).toEqual([1]);
    expect(await held(b, B)).toEqual(['a']);
    expect(await on(a).living()).toMatchObject([
      { name: 'a', holds: ['jobs'] },
      { name: 'b', holds: [] },
    ]);
    expect(await held(a, A, LONG)).toEqual([1, 1]);
    expect(await held(a, A, LONG)).toEqual([1, 1]);
    await runOut();
    await on(b).join(B, '1.0', LONG);
    expect(await held(b, B)).toEqual([2, 2]);
    expect(await held(a, A)).toEqual(['b', 'b']);
  });

  it('what one gives up is free at once, and what ran out is taken anew', async () => {
    for (const [which, node] of [
      [a, A],
      [b, B],
    ] as const)
      await on(which).join(node, '1.0', LONG);
    await held(a, A);
    await on(a).leave(A);
    expect(await on(b).living()).toMatchObject([{ name: 'b' }]);
    expect(await held(b, B, LONG)).toEqual([2, 2]);
    expect(await held(b, B, LONG)).toEqual([2, 2]);
  });

  it('of many who want them at once, one holds them', async () => {
    const many = Array.from({ length: 8 }, (_, n) => ({ name: `n${n}`, token: `t${n}` }));
    await Promise.all(many.map((node, n) => on([a, b][n % 2]).join(node, '1.0', LONG)));
    const kept = await Promise.all(many.map((node, n) => on([a, b][n % 2]).keep(node, ALL, LONG)));
    expect(kept.filter((each) => each?.isHolder)).toHaveLength(1);
  });
});
