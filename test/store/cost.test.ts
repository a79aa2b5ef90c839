/** What a plain message costs: statements, and write transactions. The figures are a budget: a step more is a step too many. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import type { Store } from '../../src/core/store.js';
import { migrate } from '../../src/store/migrate.js';
import { storeOn } from '../../src/store/open.js';
import { connect, type SqliteDatabase } from '../../src/store/sqlite/connection.js';
import {
  ANN,
  begin,
  CHAT,
  delivery,
  finishWith,
  lease,
  looked,
  message,
  NOW,
} from '../contract/store/words.js';
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

/** One message, as the route asks for it: what each step cost, and how often was written. */
async function oneMessage(n: number, chatId = CHAT) {
  count();
  const costs: Record<string, number> = {};
  let transactions = 0;
  async function step<T>(name: string, work: Promise<T>): Promise<T> {
    const result = await work;
    transactions += ran.filter((sql) => /^BEGIN IMMEDIATE/.test(sql)).length;
    costs[name] = count();
    return result;
  }
  await step(
    'door',
    (async () => {
      await store.chatOf(chatId);
      await store.aliasOf(ANN.id);
      await store.approvalOf({ chatId, senderId: ANN.id });
      await store.question({ room: chatId, senderId: ANN.id, now: NOW });
    })(),
  );
  const chat = { id: chatId, address: '1', kind: 'group' as const, title: 'Chat' };
  const receipts = [message(`${n}`, 'hi', { chat })];
  await step(
    'receive',
    store.receive({ channel: 'test', account: 'bot', now: NOW, cursor: `${n}`, receipts }),
  );
  const seen = await step('look', looked(store, chatId));
  const turn = await step('begin', begin(store, seen, `${chatId} ${n}`));
  const ask = { room: chatId, personaId: 'default', limit: 200, overheard: 50 };
  await step('window', store.window({ ...ask, except: seen.waiting.map(({ id }) => id) }));
  if (!turn) throw new Error('the room was taken');
  const ended = await step(
    'finish',
    finishWith(store, turn, `${chatId} ${n}`, {
      deliveries: [delivery(`turn:${chatId} ${n}`, 'hello')],
      send: lease(),
      usage: { inputTokens: 1, outputTokens: 1 },
      measured: { counted: 10, estimated: 9 },
      given: { memory: 'm', dailyLog: 'd', recalled: 'r', summary: 's' },
    }),
  );
  const first = ended === 'lost' ? null : ended.first;
  await step('sent', store.settle(first?.id ?? 0, { kind: 'sent', platformMessageId: `p${n}` }, NOW));
  const statements = Object.values(costs).reduce((sum, cost) => sum + cost, 0);
  return { costs, statements, transactions };
}

it('a plain message is at most 34 statements and four of its two entries in the journal, and four write transactions', async () => {
  for (let n = 0; n < 3; n++) await oneMessage(n);
  const { costs, statements, transactions } = await oneMessage(3);
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
  for (let n = 0; n < 2; n++) await Promise.all(chats.map((id) => oneMessage(n, id)));
  count();
  await Promise.all(
    chats.map((id) => {
      const chat = { id, address: '1', kind: 'group' as const, title: 'Chat' };
      const receipts = [message('9', 'hi', { chat })];
      return store.receive({ channel: 'test', account: 'bot', now: NOW, receipts });
    }),
  );
  expect(ran.filter((sql) => sql.startsWith('BEGIN'))).toHaveLength(1);
});
