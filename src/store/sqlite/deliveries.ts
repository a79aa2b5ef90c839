/** Step 7 of the route: the outbox, in order per chat. And the one way in which a reply gets into it. */
import { and, asc, eq, inArray, sql } from 'drizzle-orm';
import type { ChatId } from '../../core/ids.js';
import type { Address } from '../../core/message.js';
import type { NewDelivery, OutboxStore } from '../../core/store.js';
import type { Chats } from './chats.js';
import type { Connection } from './connection.js';
import { toDelivery } from './rows.js';
import { outbox } from './schema.js';

const given = sql.placeholder;

/** Where and when a delivery is to go. */
interface Destination {
  chatId: ChatId;
  channel: string;
  address: Address;
  threadId: string | null;
  kind: 'direct' | 'group';
  now: number;
}

/** Puts deliveries into the outbox. To be called within a transaction. */
export type Deliver = (to: Destination, deliveries: NewDelivery[], duplicates?: 'passed over') => void;

export function deliverOf({ query }: Connection): Deliver {
  const values = {
    origin: given('origin'),
    personaId: given('personaId'),
    speaker: given('speaker'),
    part: given('part'),
    chatId: given('chatId'),
    channel: given('channel'),
    address: given('address'),
    threadId: given('threadId'),
    kind: given('kind'),
    body: given('body'),
    face: given('face'),
    replyTo: given('replyTo'),
    createdAt: given('now'),
    state: 'waiting',
  } as const;
  const insert = query.insert(outbox).values(values).prepare();
  const insertOnce = query.insert(outbox).values(values).onConflictDoNothing().prepare();
  return (to, deliveries, duplicates) => {
    const statement = duplicates ? insertOnce : insert;
    for (const delivery of deliveries) {
      statement.run({ face: null, ...to, ...delivery, personaId: delivery.personaId ?? '' });
    }
  };
}

export function outboxStore(connection: Connection, chats: Chats, deliver: Deliver): OutboxStore {
  const { query, read, write } = connection;
  const isThis = eq(outbox.id, given('id'));
  const isOpen = sql`${outbox.finishedAt} is null`;

  const next = query
    .select()
    .from(outbox)
    .where(and(eq(outbox.chatId, given('chatId')), isOpen))
    .orderBy(asc(outbox.id))
    .prepare();
  const one = query.select().from(outbox).where(isThis).prepare();
  const sending = query
    .update(outbox)
    .set({ state: 'sending', attempts: sql`${outbox.attempts} + 1` })
    .where(and(isThis, isOpen))
    .prepare();
  const sent = query
    .update(outbox)
    .set({
      state: 'sent',
      platformMessageId: sql`${given('platformMessageId')}`,
      finishedAt: sql`${given('now')}`,
      error: null,
    })
    // One that a reset dropped while it was under way was sent all the same.
    .where(and(isThis, inArray(outbox.state, ['waiting', 'sending', 'dropped'])))
    .prepare();
  const retry = query
    .update(outbox)
    .set({
      state: 'waiting',
      notBefore: sql`${given('notBefore')}`,
      uncertainCuts: sql`${outbox.uncertainCuts} + ${given('cuts')}`,
      error: sql`${given('error')}`,
    })
    .where(and(isThis, isOpen))
    .prepare();
  const give = query
    .update(outbox)
    .set({
      state: sql`${given('end')}`,
      error: sql`${given('error')}`,
      finishedAt: sql`${given('now')}`,
    })
    .where(and(isThis, isOpen))
    .prepare();

  return {
    next: (chatId) =>
      read(() => {
        const row = next.get({ chatId });
        return row ? toDelivery(row) : null;
      }),
    delivery: (id) =>
      read(() => {
        const row = one.get({ id });
        return row ? toDelivery(row) : null;
      }),
    sending: (id) => write(() => sending.run({ id }).changes === 1),
    sent: (id, platformMessageId, now) => write(() => void sent.run({ id, platformMessageId, now })),
    retry: (id, { notBefore, uncertain, error }) =>
      write(() => void retry.run({ id, notBefore, cuts: uncertain ? 1 : 0, error })),
    give: (id, end, error, now) => write(() => void give.run({ id, end, error, now })),
    move: (chatId, address) => write(() => chats.moved(chatId, address)),
    post: ({ delivery, ...to }) => write(() => deliver(to, [delivery], 'passed over')),
  };
}
