/**
 * Step 1 of the route, before anything is stored: who somebody is, whether they may talk, and what they were asked or
 * offered. All of it is usually in memory.
 */
import type { AccessStore, AliasStore, ApprovedKind, Question } from '../../core/access.js';
import type { ChatId, RoomId } from '../../core/ids.js';
import type { CommandEffect } from '../../core/route-store.js';
import { columns, excluded, insertInto, type Row } from './columns.js';
import type { Connection } from './connection.js';
import type { Offers } from './offers.js';
import type { question } from './schema-work.js';

type Door = Pick<AccessStore, 'standing' | 'question' | 'offer' | 'offers'> & AliasStore;

export function doorStore(
  connection: Connection,
  approvals: Approvals,
  questions: Questions,
  offers: Offers,
): Door {
  const { raw, memory, patiently, write } = connection;
  const findAlias = raw.prepare<[string], string>('select chat_id from alias where id = ?').pluck();
  const addAlias = raw.prepare<[object]>(`
    ${insertInto('alias', 'id chatId')} on conflict do update set ${excluded('chatId')}`);

  return {
    aliasOf: (id) => patiently(() => memory.get(`alias ${id}`, () => findAlias.get(id) ?? null)),
    addAlias: (id, chatId) =>
      write(() => {
        addAlias.run({ id, chatId });
        memory.touch(`alias ${id}`);
      }),

    standing: ({ chatId, senderId }) =>
      patiently(() => {
        const sender = approvals.find(senderId);
        const chat = approvals.find(chatId);
        return { chat: chat !== undefined, sender: sender !== undefined, owner: sender?.owner === 1 };
      }),

    question: ({ room, senderId, now }) =>
      patiently(() => {
        const found = questions.find(room, senderId);
        if (found === undefined || found.until <= now) return null;
        const { id, askedBy, ifYes } = found;
        return { id, askedBy, ifYes };
      }),

    offer: (key, now) =>
      patiently(() => {
        const found = offers.find(key);
        return found !== undefined && found.until > now ? found : null;
      }),

    offers: ({ room, senderId, now }) =>
      patiently(() =>
        offers
          .in(room)
          .filter((each) => each.until > now && (each.senderId === null || each.senderId === senderId)),
      ),
  };
}

export type Approvals = ReturnType<typeof approvalsOf>;

/** Who was let in. `touch`: to be called within the transaction that changes it. */
export function approvalsOf({ raw, memory }: Connection) {
  const find = raw.prepare<[string], { owner: number; kind: ApprovedKind }>(
    'select owner, kind from approval where id = ? and revoked_at is null',
  );
  const read = (id: string) => find.get(id);

  return {
    read,
    find: (id: string) => memory.get(`approval ${id}`, () => read(id)),
    touch: (id: string) => memory.touch(`approval ${id}`),
  };
}

type Asking = Extract<CommandEffect, { kind: 'ask' }>;
export type Questions = ReturnType<typeof questionsOf>;

/** Questions that people have not answered yet. To be called within a transaction, except `find`. */
export function questionsOf({ raw, memory }: Connection) {
  const find = raw.prepare<[RoomId, ChatId], Omit<Row<typeof question>, 'roomId' | 'senderId' | 'offer'>>(`
    select ${columns('id askedBy name argument until')} from question where room_id = ? and sender_id = ?`);
  const ask = raw.prepare<[object]>(`
    insert or replace into question (room_id, sender_id, asked_by, name, argument, until, offer)
    values (@room, @senderId, @askedBy, @name, @argument, @until, @offer)`);
  const end = (which: string) =>
    raw.prepare<[object], { room: RoomId; senderId: ChatId; offer: string | null }>(
      `delete from question where ${which} returning room_id as room, sender_id as senderId, offer`,
    );
  const endOne = end('id = @id');
  const endOffered = end('room_id = @room and offer = @key');
  const nameOf = (room: RoomId, senderId: ChatId) => `question ${room} ${senderId}`;

  return {
    find: (room: RoomId, senderId: ChatId): (Question & { until: number }) | undefined =>
      memory.get(nameOf(room, senderId), () => {
        const row = find.get(room, senderId);
        if (!row) return undefined;
        const { id, askedBy, name, argument, until } = row;
        return { id, askedBy, ifYes: { name, argument }, until };
      }),
    /** Replaces the previous question. */
    ask({ room, senderId, askedBy, ifYes, until, offer }: Asking): void {
      ask.run({ room, senderId, askedBy, ...ifYes, until, offer: offer ?? null });
      memory.touch(nameOf(room, senderId));
    },
    /** The key of the offer that asks the same, or null; undefined if the question had ended already. */
    end(id: number): string | null | undefined {
      const ended = endOne.get({ id });
      if (ended) memory.touch(nameOf(ended.room, ended.senderId));
      return ended?.offer;
    },
    /** The offer that asks the same was answered. */
    endOffered(room: RoomId, key: string): void {
      for (const { senderId } of endOffered.all({ room, key })) memory.touch(nameOf(room, senderId));
    },
  };
}
