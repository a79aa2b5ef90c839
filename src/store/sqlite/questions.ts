/** Within step 1 of the route: pending questions to people, whose plain yes becomes a command. */
import type { Question } from '../../core/access.js';
import type { ChatId, RoomId } from '../../core/ids.js';
import type { CommandEffect } from '../../core/route-store.js';
import { columns, type Row } from './columns.js';
import type { Connection } from './connection.js';
import type { question } from './schema-work.js';

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
