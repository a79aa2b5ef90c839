/** Pending questions to people: a plain yes becomes a command. */

import type { AccessStore, Question } from '../../core/access.js';
import type { ChatId, RoomId } from '../../core/ids.js';
import type { CommandEffect } from '../../core/route-store.js';
import type { Connection } from './connection.js';

export interface Questions {
  find(room: RoomId, senderId: ChatId): (Question & { until: number }) | undefined;
  /**
   * Replaces the previous question. Both must be called within a transaction; `end` returns false if it had ended
   * already.
   */
  ask(question: Extract<CommandEffect, { kind: 'ask' }>): void;
  end(id: number): boolean;
}

interface QuestionRow {
  id: number;
  askedBy: string;
  name: string;
  argument: string;
  until: number;
}

export function questionsOf({ raw, memory }: Connection): Questions {
  const find = raw.prepare<[RoomId, ChatId], QuestionRow>(`
    select id, asked_by as askedBy, name, argument, until from question where room_id = ? and sender_id = ?`);
  const ask = raw.prepare<[object]>(`
    insert or replace into question (room_id, sender_id, asked_by, name, argument, until)
    values (@room, @senderId, @askedBy, @name, @argument, @until)`);
  const end = raw.prepare<[number], { room: RoomId; senderId: ChatId }>(
    'delete from question where id = ? returning room_id as room, sender_id as senderId',
  );
  const nameOf = (room: RoomId, senderId: ChatId) => `question ${room} ${senderId}`;

  return {
    find: (room, senderId) =>
      memory.get(nameOf(room, senderId), () => {
        const row = find.get(room, senderId);
        if (!row) return undefined;
        const { id, askedBy, name, argument, until } = row;
        return { id, askedBy, ifYes: { name, argument }, until };
      }),
    ask({ room, senderId, askedBy, ifYes, until }) {
      ask.run({ room, senderId, askedBy, ...ifYes, until });
      memory.touch(nameOf(room, senderId));
    },
    end(id) {
      const ended = end.get(id);
      if (ended) memory.touch(nameOf(ended.room, ended.senderId));
      return ended !== undefined;
    },
  };
}

export function questionStore(
  { patiently }: Connection,
  questions: Questions,
): Pick<AccessStore, 'question'> {
  return {
    question: ({ room, senderId, now }) =>
      patiently(() => {
        const found = questions.find(room, senderId);
        if (found === undefined || found.until <= now) return null;
        const { id, askedBy, ifYes } = found;
        return { id, askedBy, ifYes };
      }),
  };
}
