/** What a plain message costs: statements, and write transactions. The figures are a budget: a step more is a step too many. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import type { Store } from '../../src/core/store.js';
import { migrate } from '../../src/store/migrate.js';
import { storeOn } from '../../src/store/open.js';
import { connect, type SqliteDatabase } from '../../src/store/sqlite/connection.js';
import { CHAT, chatAt, message, receive } from '../contract/store/words.js';
import { oneMessage } from './one-message.js';
import { MIGRATIONS, openHere, type Place } from './place.js';

let place: Place;
let connection: SqliteDatabase;
let store: Store;
/** What was run since it was counted last. */
let ran: string[] = [];

beforeEach(async () => {
  place = await openHere();
  connection = await connect({
    file: place.file,
    clock: systemClock,
    busyTimeoutMs: 0,
    onStatement: (sql) => ran.push(sql),
  });
  await migrate(connection, MIGRATIONS);
  store = storeOn(connection);
});
afterEach(async () => {
  await connection.close();
  await place.remove();
});

function count(): number {
  const { length } = ran;
  ran = [];
  return length;
}

/** One message: what each step of its route cost, and how often was written. */
async function counted(n: number) {
  count();
  const costs: Record<string, number> = {};
  let transactions = 0;
  await oneMessage(store, n, CHAT, async (name, step) => {
    const result = await step();
    transactions += ran.filter((sql) => /^BEGIN IMMEDIATE/.test(sql)).length;
    costs[name] = count();
    return result;
  });
  const statements = Object.values(costs).reduce((sum, cost) => sum + cost, 0);
  return { costs, statements, transactions };
}

it('a plain message is at most 34 statements and four of its two entries in the journal, and four write transactions', async () => {
  for (let n = 0; n < 3; n++) await counted(n);
  const { costs, statements, transactions } = await counted(3);
  expect(costs.door).toBeLessThanOrEqual(5);
  // The entry of what was said; of the message that answers it, with its cause; and the end of that.
  expect(costs.receive).toBeLessThanOrEqual(7 + 1);
  expect(costs.look).toBe(1);
  expect(costs.begin).toBeLessThanOrEqual(6);
  expect(costs.window).toBeLessThanOrEqual(2);
  expect(costs.finish).toBeLessThanOrEqual(10 + 2);
  expect(costs.sent).toBe(3 + 1);
  expect(statements, JSON.stringify(costs)).toBeLessThanOrEqual(34 + 4);
  expect(transactions).toBe(4);
});

it('chats that are busy at once commit together', async () => {
  const chats = Array.from({ length: 20 }, (_, n) => `test_${n}`);
  for (let n = 0; n < 2; n++) await Promise.all(chats.map((id) => oneMessage(store, n, id)));
  count();
  await Promise.all(chats.map((id) => receive(store, [message('9', 'hi', { chat: chatAt(id) })])));
  expect(ran.filter((sql) => sql.startsWith('BEGIN'))).toHaveLength(1);
});
