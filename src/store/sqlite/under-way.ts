/** Beside the route: what is under way in a room, for whoever stops it or asks how it stands: who answers, and whom. */
import type { ChatStore } from '../../core/chat-record.js';
import type { ChatId, PersonaId } from '../../core/ids.js';
import type { Connection } from './connection.js';

interface Asking {
  turnId: string;
  personaId: PersonaId;
  asker: ChatId;
}

export function underWayStore({ raw, read, patiently }: Connection): Omit<ChatStore, 'chat'> {
  const lastOf = raw.prepare<[string], { personaId: PersonaId; at: number }>(`
    select last_persona as personaId, last_reply_at as at from room
    where id = ? and last_persona is not null and last_reply_at is not null`);
  const waiting = raw.prepare<[object]>(`
    select 1 from message where room_id = @room and state = 'waiting' and id <= @upTo and quiet = 0 limit 1`);
  // The senders of the messages that the turn answers, or that the exchange began with.
  const askersOf = (which: string) =>
    raw.prepare<[string], Asking>(`
      select distinct turn.id as turnId, turn.persona_id as personaId, author_id as asker
      from turn join message on message.id in (select value from json_each(turn.batch)) or message.id in (
        select json_extract(json_each.value, '$.id') from room join json_each(room.exchange, '$.said')
        where room.id = turn.room_id and room.exchange is not null)
      where turn.id = (${which})`);
  const running = askersOf(`select id from turn where room_id = ? and state = 'running'`);
  const suspended = askersOf(`
    select id from turn where room_id = ? and state in ('suspended', 'ready') order by started_at desc limit 1`);

  const who = (statement: typeof running, room: string) =>
    read(() => {
      const rows = statement.all(room);
      const [first] = rows;
      if (first === undefined) return null;
      return { turnId: first.turnId, personaId: first.personaId, askers: rows.map((row) => row.asker) };
    });

  return {
    lastReply: (room) => patiently(() => lastOf.get(room) ?? null),
    running: (room) => who(running, room),
    suspended: (room) => who(suspended, room),
    waits: (room, upTo) => patiently(() => waiting.get({ room, upTo }) !== undefined),
  };
}
