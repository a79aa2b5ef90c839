/**
 * The cost of a message does not grow on PostgreSQL, even while nothing has counted the rows of its tables: the server of
 * the tests has no autovacuum, and a connection keeps the plans that it made while they were empty.
 */
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Store } from '../../src/core/store.js';
import { NOW } from '../contract/store/words.js';
import { describeWithPostgres, type PostgresServer, startPostgres } from '../harness/postgres.js';
import { oneMessage } from './one-message.js';
import { openPostgres } from './place.js';

const FEW = 60;
const MANY = 300;

describeWithPostgres('with a PostgreSQL of its own', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server.close());

  /** Of all tables so far. A connection tells its counts at its end. */
  async function rowsRead(url: string): Promise<number> {
    const open = 'select count(*) from pg_stat_activity where datname = current_database()';
    while (Number((await server.query<{ count: string }>(open, url))[0]?.count) > 1) await setTimeout(20);
    const read = `
      select (select sum(seq_tup_read) from pg_stat_user_tables)
        + (select sum(idx_tup_read) from pg_stat_user_indexes) as rows`;
    return Number((await server.query<{ rows: string }>(read, url))[0]?.rows);
  }

  /** Rows read for each of so many messages in chats of their own. */
  async function costOfOne(messages: number): Promise<number> {
    const place = await openPostgres(server);
    const before = await rowsRead(place.url);
    const store = await place.open();
    for (let n = 0; n < messages; n++) await messageAndLooks(store, `test_${n}`, n);
    await store.close();
    const after = await rowsRead(place.url);
    await place.remove();
    return (after - before) / messages;
  }

  it('reads as many rows for a message, however many there are', async () => {
    expect(await costOfOne(MANY)).toBeLessThan(1.5 * (await costOfOne(FEW)));
  });
});

/** With the looks that other parts of the gateway take because of it. */
async function messageAndLooks(store: Store, chatId: string, n: number): Promise<void> {
  await oneMessage(store, n, chatId);
  await store.roomsHeard(chatId, 'default');
  await store.readRoom(chatId, 'me', NOW);
  await store.pending({ owner: 'me', channels: ['test'], now: NOW });
  const [view] = await store.heardViews({ room: chatId, personaId: '' }, 1);
  const since = { room: chatId, personaId: view?.personaId ?? '', after: { heardAfter: 0, messageId: 0 } };
  await store.heardSince({ ...since, addressed: true, most: 20 });
}
