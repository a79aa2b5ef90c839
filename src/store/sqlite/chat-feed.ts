/** A chat as people saw it, for exports: walked through in strides along the ids of all messages. */
import type { ChatFeed } from '../../core/chat-export.js';
import type { RoomId } from '../../core/ids.js';
import type { Connection } from './connection.js';
import { stillHeardIn } from './still-heard.js';
import { strideEnd } from './strides.js';

const STRIDE = 5_000;

interface SaidRow {
  id: number;
  room: RoomId;
  /** A reset of its room came after it. */
  isOld: number;
}

export function chatFeed({ raw, read }: Pick<Connection, 'raw' | 'read'>): Pick<ChatFeed, 'saidIn'> {
  const stillHeard = stillHeardIn({ raw });
  const end = strideEnd(raw, { table: 'message', key: 'id', first: 0 }, STRIDE);
  const saidBetween = raw.prepare<[object], SaidRow>(`
    select id, room_id as room,
      id <= coalesce((select max(reset_at) from view where view.room_id = message.room_id), 0) as isOld
    from message
    where id > @after and id <= @upTo and +chat_id = @chatId and author_kind <> 'gateway'
      and (text <> '' or words is not null or attachments is not null)
      and sent_at >= coalesce(@since, sent_at) and sent_at <= coalesce(@until, sent_at)
      and id > coalesce((
        select reset_at from view where view.room_id = message.room_id and view.persona_id = @by), 0)
      and not exists (
        select 1 from message as later
        where later.chat_id = message.chat_id and later.account = message.account and later.moves = message.moves
          and later.platform_message_id = message.platform_message_id and later.edited = 1
          and later.id > message.id)
    order by id`);

  function withoutForgotten(rows: SaidRow[]): SaidRow[] {
    const old = new Map<RoomId, number[]>();
    for (const { id, room, isOld } of rows) if (isOld) old.set(room, [...(old.get(room) ?? []), id]);
    const heard = new Map([...old].map(([room, ids]) => [room, stillHeard(room, ids)]));
    return rows.filter(({ id, room, isOld }) => !isOld || heard.get(room)?.has(id));
  }

  return {
    saidIn: (ask) =>
      read(() => {
        const upTo = end.get({ after: ask.after });
        if (typeof upTo !== 'number') return { said: [], next: null };
        const rows = withoutForgotten(saidBetween.all({ ...ask, upTo }));
        return { said: rows.map(({ id, room }) => ({ id, room })), next: upTo };
      }),
  };
}
