/** Step 7 of the route: the outbox, in order per chat. And the one way in which a reply gets into it. */
import { and, asc, eq, inArray, sql } from 'drizzle-orm';
import { Fault } from '../../core/errors.js';
import type { ChatId } from '../../core/ids.js';
import type { Address } from '../../core/message.js';
import type { NewDelivery, OutboxStore } from '../../core/store.js';
import type { Chats } from './chats.js';
import type { Connection } from './connection.js';
import { outbox } from './schema.js';
import { isOpen, type OpenEntries, openEntriesOf, shownDelivery, shownVerbs } from './shown.js';

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

export interface Deliver {
  /** Puts deliveries into the outbox, into open entries where there are. To be called within a transaction. */
  (to: Destination, deliveries: NewDelivery[], duplicates?: 'passed over'): void;
  /** What becomes of the entries that are open when a turn ends. */
  open: OpenEntries;
}

export function deliverOf(connection: Connection): Deliver {
  const { query } = connection;
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
  const insert = query
    .insert(outbox)
    .values(values)
    .onConflictDoUpdate({
      target: [outbox.origin, outbox.personaId, outbox.part],
      setWhere: isOpen,
      set: {
        ...{ state: 'waiting', notBefore: 0, speaker: sql`excluded.speaker`, body: sql`excluded.body` },
        ...{ address: sql`excluded.address`, face: sql`excluded.face`, replyTo: sql`excluded.reply_to` },
        // Where nobody knows whether it arrived, it is looked for since then.
        createdAt: sql`case ${outbox.platformMessageId} when '' then ${outbox.createdAt} else excluded.created_at end`,
        attempts: sql`case ${outbox.platformMessageId} when '' then ${outbox.attempts} else 0 end`,
      },
    })
    .prepare();
  const insertOnce = query.insert(outbox).values(values).onConflictDoNothing().prepare();

  function deliver(to: Destination, deliveries: NewDelivery[], duplicates?: 'passed over'): void {
    const statement = duplicates ? insertOnce : insert;
    for (const delivery of deliveries) {
      const row = { face: null, ...to, ...delivery, personaId: delivery.personaId ?? '' };
      if (statement.run(row).changes === 0 && !duplicates) {
        throw new Fault('internal', `${delivery.origin}, part ${delivery.part}, is in the outbox already`);
      }
    }
  }
  return Object.assign(deliver, { open: openEntriesOf(connection) });
}

export function outboxStore(connection: Connection, chats: Chats, deliver: Deliver): OutboxStore {
  const { query, read, write } = connection;
  const isThis = eq(outbox.id, given('id'));
  const isUnfinished = sql`${outbox.finishedAt} is null`;

  const next = query
    .select()
    .from(outbox)
    .where(and(eq(outbox.chatId, given('chatId')), isUnfinished, sql`not ${isOpen}`))
    .orderBy(asc(outbox.id))
    .prepare();
  const one = query.select().from(outbox).where(isThis).prepare();
  const sending = query
    .update(outbox)
    .set({ state: 'sending', attempts: sql`${outbox.attempts} + 1` })
    .where(and(isThis, isUnfinished))
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
      state: sql`case ${outbox.state} when 'open' then 'open' else 'waiting' end`,
      notBefore: sql`${given('notBefore')}`,
      uncertainCuts: sql`${outbox.uncertainCuts} + ${given('cuts')}`,
      error: sql`${given('error')}`,
    })
    .where(and(isThis, isUnfinished))
    .prepare();
  const give = query
    .update(outbox)
    .set({
      state: sql`${given('end')}`,
      error: sql`${given('error')}`,
      finishedAt: sql`${given('now')}`,
    })
    .where(and(isThis, isUnfinished))
    .prepare();

  return {
    next: (chatId) =>
      read(() => {
        const row = next.get({ chatId });
        return row ? shownDelivery(row) : null;
      }),
    delivery: (id) =>
      read(() => {
        const row = one.get({ id });
        return row ? shownDelivery(row) : null;
      }),
    sending: (id) => write(() => sending.run({ id }).changes === 1),
    sent: (id, platformMessageId, now) => write(() => void sent.run({ id, platformMessageId, now })),
    retry: (id, { notBefore, uncertain, error }) =>
      write(() => void retry.run({ id, notBefore, cuts: uncertain ? 1 : 0, error })),
    give: (id, end, error, now) => write(() => void give.run({ id, end, error, now })),
    ...shownVerbs(connection),
    move: (chatId, address) => write(() => chats.moved(chatId, address)),
    post: ({ delivery, ...to }) => write(() => deliver(to, [delivery], 'passed over')),
  };
}
