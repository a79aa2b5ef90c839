/**
 * What a persona says when it first appears in a room: words of its own that answer nothing, so no turn has said them.
 * To be called within a transaction.
 */
import type { Greeting } from '../../core/delivery.js';
import { roomParts } from '../../core/ids.js';
import type { Chats } from './chats.js';
import type { Connection } from './connection.js';
import type { Speak } from './finish.js';

export type Greet = (greeting: Greeting, now: number) => void;

export function greetOf({ raw }: Pick<Connection, 'raw'>, chats: Chats, speak: Speak): Greet {
  // A persona may be greeted with before anybody has written anything in the room.
  const newest = raw.prepare<[object]>(`
    insert into room (id, chat_id, newest_message) values (@room, @chatId, @id)
    on conflict do update set newest_message = max(newest_message, excluded.newest_message)`);

  return (greeting, now) => {
    const { room } = greeting;
    const { chatId } = roomParts(room);
    const chat = chats.find(chatId);
    if (!chat) return;
    const id = speak(chat, { ...greeting, turnId: null, addressed: [], now });
    newest.run({ room, chatId, id });
  };
}
