/**
 * Chats: where they live, and that they move. A chat that moved begins its message ids anew, so every message
 * carries how often its chat had moved (`moves`); a late message from an address that was left is told by it.
 */
import { and, eq, sql } from 'drizzle-orm';
import type { ChatId } from '../../core/ids.js';
import type { ChatStore, Receipt } from '../../core/store.js';
import type { Connection } from './connection.js';
import { toChat } from './rows.js';
import { chat, leftAddress, message, outbox, room as roomTable, turn } from './schema.js';

const given = sql.placeholder;

type ChatRow = typeof chat.$inferSelect;
type ReceivedChat = Extract<Receipt, { kind: 'message' | 'command' }>['chat'];

/** What verbs on chats share. To be called within a transaction. */
export interface Chats {
  find(id: ChatId): ChatRow | undefined;
  /** How often the chat had moved when it lived at this address. */
  movesAt(row: ChatRow | undefined, address: string): number;
  /** Notes that a chat talked: creates it where there is no row, keeps title and address current. */
  talked(
    row: ChatRow | undefined,
    received: ReceivedChat,
    from: { channel: string; account: string; now: number },
  ): void;
  /** The platform moved it: what is still to be delivered goes to the new address. */
  moved(id: ChatId, address: string): void;
}

export function chatsOf({ query }: Connection): Chats {
  const findRow = query
    .select()
    .from(chat)
    .where(eq(chat.id, given('id')))
    .prepare();
  const findLeft = query
    .select({ moves: leftAddress.moves })
    .from(leftAddress)
    .where(and(eq(leftAddress.chatId, given('id')), eq(leftAddress.address, given('address'))))
    .prepare();
  const insert = query
    .insert(chat)
    .values({
      id: given('id'),
      channel: given('channel'),
      account: given('account'),
      address: given('address'),
      kind: given('kind'),
      title: given('title'),
      lastMessageAt: given('now'),
    })
    .prepare();
  const refresh = query
    .update(chat)
    .set({
      account: sql`${given('account')}`,
      address: sql`${given('address')}`,
      kind: sql`${given('kind')}`,
      title: sql`${given('title')}`,
      lastMessageAt: sql`${given('now')}`,
    })
    .where(eq(chat.id, given('id')))
    .prepare();

  function find(id: ChatId): ChatRow | undefined {
    return findRow.get({ id });
  }

  /** Defined when the chat once lived there and does not any more. */
  function leftWith(row: ChatRow, address: string): number | undefined {
    return address === row.address ? undefined : findLeft.get({ id: row.id, address })?.moves;
  }

  return {
    find,
    movesAt: (row, address) => (row ? (leftWith(row, address) ?? row.moves) : 0),
    talked(row, received, from) {
      if (!row) {
        insert.run({ ...received, ...from });
        return;
      }
      const address = leftWith(row, received.address) === undefined ? received.address : row.address;
      refresh.run({ ...received, ...from, address });
    },
    moved(id, address) {
      const row = find(id);
      if (!row || row.address === address) return;
      query
        .insert(leftAddress)
        .values({ chatId: id, address: row.address, moves: row.moves })
        .onConflictDoNothing()
        .run();
      query
        .delete(leftAddress)
        .where(and(eq(leftAddress.chatId, id), eq(leftAddress.address, address)))
        .run();
      query
        .update(chat)
        .set({ address, moves: row.moves + 1 })
        .where(eq(chat.id, id))
        .run();
      query
        .update(outbox)
        .set({ address })
        .where(and(eq(outbox.chatId, id), sql`${outbox.finishedAt} is null`))
        .run();
    },
  };
}

export function chatStore({ query, read }: Connection, chats: Chats): ChatStore {
  const lastOf = query
    .select({ personaId: roomTable.lastPersona, at: roomTable.lastReplyAt })
    .from(roomTable)
    .where(eq(roomTable.id, given('room')))
    .prepare();
  const waiting = query
    .select({ id: message.id })
    .from(message)
    .where(
      sql`${message.roomId} = ${given('room')} and ${message.state} = 'waiting' and ${message.id} <= ${given('upTo')} and ${message.quiet} = 0`,
    )
    .prepare();
  return {
    chat: (id) =>
      read(() => {
        const row = chats.find(id);
        return row ? toChat(row) : null;
      }),
    lastReply: (room) =>
      read(() => {
        const last = lastOf.get({ room });
        if (last === undefined || last.personaId === null || last.at === null) return null;
        return { personaId: last.personaId, at: last.at };
      }),
    running: (room) =>
      read(() => {
        const rows = query
          .selectDistinct({ turnId: turn.id, personaId: turn.personaId, asker: message.authorId })
          .from(turn)
          .innerJoin(
            message,
            sql`(${message.id} in (select value from json_each(${turn.batch})) or ${message.id} in (
              select json_extract(json_each.value, '$.id')
              from ${roomTable} join json_each(${roomTable.exchange}, '$.said')
              where ${roomTable.id} = ${turn.roomId} and ${roomTable.exchange} is not null))`,
          )
          .where(and(eq(turn.roomId, room), sql`${turn.state} = 'running'`))
          .all();
        const [first] = rows;
        if (first === undefined) return null;
        const { turnId, personaId } = first;
        return { turnId, personaId, askers: rows.map((row) => row.asker) };
      }),
    waits: (room, upTo) => read(() => waiting.get({ room, upTo }) !== undefined),
  };
}
