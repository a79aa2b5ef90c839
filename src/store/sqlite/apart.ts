/**
 * Step 1 of the route: a room turned out to belong to another chat. Whoever heard it forgets it, as after `/reset`, and
 * what answers in its old chat were given is forgotten too, for some of it may be from there.
 */
import { type ChatId, type PersonaId, type RoomId, roomParts } from '../../core/ids.js';
import type { Chats } from './chats.js';
import type { Endings } from './commands.js';
import type { Connection } from './connection.js';

export type CloseRoom = (room: RoomId, now: number) => void;

/** To be called within a transaction. */
export function closeRoomOf({ raw }: Connection, chats: Chats, endings: Endings): CloseRoom {
  const newestIn = raw.prepare<[RoomId], number>('select newest_message from room where id = ?').pluck();
  const nextHearer = raw
    .prepare<[RoomId, PersonaId], PersonaId>(
      'select persona_id from heard where room_id = ? and persona_id > ? order by persona_id limit 1',
    )
    .pluck();
  const forgetGiven = raw.prepare<[ChatId]>(
    'delete from given where room_id in (select id from room where chat_id = ?)',
  );

  // What was to be said in it is nothing for the chat that it belonged to.
  const cancelJobs = raw.prepare<[object]>(`
    update job set state = 'cancelled', next_at = null, prompt = '', ended_at = @now
    where chat_id = @chatId and room_id = @room`);

  return (room, now) => {
    const { chatId } = roomParts(room);
    const upTo = newestIn.get(room);
    const chat = chats.find(chatId);
    if (upTo === undefined || chat === undefined) return;
    const hearers = new Set([chat.activePersona]);
    for (let next = nextHearer.get(room, ''); next !== undefined; next = nextHearer.get(room, next)) {
      hearers.add(next);
    }
    for (const personaId of hearers) endings.reset({ kind: 'reset', room, personaId, upTo }, now);
    forgetGiven.run(chatId);
    cancelJobs.run({ chatId, room, now });
  };
}
