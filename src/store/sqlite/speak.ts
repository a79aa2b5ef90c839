/** Adds a persona's own words to a room's transcript: its reply, and its greeting. To be called within a transaction. */
import type { PersonaId, RoomId } from '../../core/ids.js';
import type { ChatRow } from './chats.js';
import type { Connection } from './connection.js';

export interface Spoken {
  room: RoomId;
  personaId: PersonaId;
  text: string;
  /** It is a reaction, not words. */
  wordless?: boolean;
  /** It answers words from outside. */
  tainted?: boolean;
  turnId: string | null;
  /** The other personas to whom it is addressed, and those who overhear it. */
  addressed: PersonaId[];
  hearers: PersonaId[];
  now: number;
}

/** Returns the message's id. */
export type Speak = (chat: Pick<ChatRow, 'chatId' | 'account' | 'moves'>, spoken: Spoken) => number;

export function speakOf({ raw }: Pick<Connection, 'raw'>): Speak {
  const say = raw.prepare<[object]>(`
    insert into message (room_id, chat_id, account, moves, author_kind, author_id, author_name, administrator, text,
      sent_at, received_at, mentions_bot, edited, state, turn_id, reaction, tainted)
    values (@room, @chatId, @account, @moves, 'persona', @personaId, @personaId, 0, @text,
      @now, @now, 0, 0, 'done', @turnId, @reaction, @tainted)`);
  const hear = raw.prepare<[object]>(`
    insert into heard (room_id, persona_id, addressed, heard_after, message_id)
    select @room, value->>0, value->>1, @id - 1, @id from json_each(@rows)`);

  return (
    { chatId, account, moves },
    { room, personaId, text, wordless, tainted, turnId, addressed, hearers, now },
  ) => {
    const said = {
      ...{ room, chatId, account, moves, personaId, text, now, turnId },
      reaction: wordless ? 1 : 0,
      tainted: tainted ? 1 : 0,
    };
    const id = Number(say.run(said).lastInsertRowid);
    const toWhom = new Set([personaId, ...addressed]);
    const overheard = hearers.filter((hearer) => !toWhom.has(hearer));
    const rows = [...[...toWhom].map((hearer) => [hearer, 1]), ...overheard.map((hearer) => [hearer, 0])];
    hear.run({ room, id, rows: JSON.stringify(rows) });
    return id;
  };
}
