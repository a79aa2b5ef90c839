/** Which messages somebody may still see: those that a persona heard whom no reset has made forget them. */

import { setImmediate as nextPass } from 'node:timers/promises';
import type { ChatFeed } from '../../core/chat-record.js';
import { type ChatId, type PersonaId, type RoomId, roomParts } from '../../core/ids.js';
import type { SaidStore, SaidWords } from '../../core/journal.js';
import type { HeardView, RecallFeed } from '../../core/recall.js';
import type { HeardMessage } from '../../core/transcript.js';
import type { Connection } from './connection.js';
import { batchEnd } from './sql.js';
import { behindReset, type FindView, HEARD_COLUMNS, type HeardRow, toHeard } from './transcript.js';

/** To be called within a transaction; `ids` of messages of the room, in order. */
type StillHeard = (room: RoomId, ids: readonly number[]) => Set<number>;

export function stillHeardIn({ raw }: Pick<Connection, 'raw'>): StillHeard {
  const resetsOf = raw.prepare<[RoomId], { personaId: PersonaId; resetAt: number }>(
    'select persona_id as personaId, reset_at as resetAt from view where room_id = ?',
  );
  const nextHearer = raw
    .prepare<[RoomId, PersonaId], PersonaId>(
      'select persona_id from heard where room_id = ? and persona_id > ? order by persona_id limit 1',
    )
    .pluck();
  const heardBetween = raw
    .prepare<[object], number>(`
      select message_id from heard
      where room_id = @room and persona_id = @personaId and addressed in (0, 1)
        and heard_after >= @first - 1 and message_id between @first and @last`)
    .pluck();

  return (room, ids) => {
    const [first, last] = [ids[0], ids.at(-1)];
    const resets = new Map(resetsOf.all(room).map(({ personaId, resetAt }) => [personaId, resetAt]));
    const heard = new Set<number>();
    let personaId = nextHearer.get(room, '');
    for (; personaId !== undefined; personaId = nextHearer.get(room, personaId)) {
      const resetAt = resets.get(personaId) ?? 0;
      for (const id of heardBetween.all({ room, personaId, first, last })) if (id > resetAt) heard.add(id);
    }
    return heard;
  };
}

// The store as recall reads it: what each persona heard, in that order, and the final decision on what it may still
// see. Independent of recall's own index.

/** A message is heard soon after it is received: at most this many others of its room come in between. */
const NEARBY = 500;

export function recallFeed({ raw, read }: Connection, findView: FindView): Omit<RecallFeed, 'originIn'> {
  const nextView = raw.prepare<
    [{ room: RoomId; personaId: PersonaId }],
    { room: RoomId; personaId: PersonaId }
  >(`
    select room_id as room, persona_id as personaId from heard
    where (room_id, persona_id) > (@room, @personaId) order by room_id, persona_id limit 1`);
  const since = raw.prepare<[object], HeardRow & { isTaken: number }>(`
    select ${HEARD_COLUMNS}, author_kind <> 'persona' and exists (
      select 1 from turn where turn.id = message.turn_id and turn.state = 'running') as isTaken
    from heard join message on message.id = heard.message_id
    where heard.room_id = @room and persona_id = @personaId and addressed = @addressed
      and (heard_after, message_id) > (@afterHeard, @afterMessage) and message_id > @resetAt
    order by heard_after, message_id limit @most + 0`);
  const roomOf = raw.prepare<[number], RoomId>('select room_id from message where id = ?').pluck();
  const heardOnce = raw.prepare<[object], HeardRow>(`
    select ${HEARD_COLUMNS}
    from (
      select * from heard
      where room_id = @room and persona_id = @personaId and addressed = @addressed and heard_after >= @id - 1
      order by heard_after, message_id limit ${NEARBY}
    ) as nearby join message on message.id = nearby.message_id
    where nearby.message_id = @id and message_id > @resetAt and heard_after >= @resetAt`);

  return {
    heardViews: (after, most) =>
      read(() => {
        const found: HeardView[] = [];
        let last = after ?? { room: '', personaId: '' };
        while (found.length < most) {
          const next = nextView.get(last);
          if (!next) break;
          const { resetAt } = findView(next.room, next.personaId);
          found.push({ ...next, resetAt });
          last = next;
        }
        return found;
      }),

    heardSince: ({ room, personaId, addressed, after, most }) =>
      read(() => {
        const view = findView(room, personaId);
        const { resetAt } = view;
        const from = behindReset(view, after);
        const rows = since.all({
          room,
          personaId,
          resetAt,
          most,
          addressed: addressed ? 1 : 0,
          afterHeard: from.heardAfter,
          afterMessage: from.messageId,
        });
        // Stops at the messages of a running turn: they, and everything after them, follow when it has ended, so that a
        // cursor skips nothing.
        const taken = rows.findIndex(({ isTaken }) => isTaken === 1);
        return (taken < 0 ? rows : rows.slice(0, taken)).map(toHeard);
      }),

    visible: ({ chatId, personaId }, messageIds) =>
      read(() => {
        const resets = new Map<RoomId, number>();
        return messageIds.flatMap((id): HeardMessage[] => {
          const room = roomOf.get(id);
          if (room === undefined || roomParts(room).chatId !== chatId) return [];
          const resetAt = resets.get(room) ?? findView(room, personaId).resetAt;
          resets.set(room, resetAt);
          const ask = { room, personaId, resetAt, id };
          const row = heardOnce.get({ ...ask, addressed: 1 }) ?? heardOnce.get({ ...ask, addressed: 0 });
          return row ? [toHeard(row)] : [];
        });
      }),
  };
}

// A chat as people saw it, for exports: walked through in strides along the ids of all messages.

const CHAT_STRIDE = 5_000;

interface SaidRow {
  id: number;
  room: RoomId;
  /** A reset of its room came after it. */
  isOld: number;
}

export function chatFeed({ raw, read }: Pick<Connection, 'raw' | 'read'>): Pick<ChatFeed, 'saidIn'> {
  const stillHeard = stillHeardIn({ raw });
  const end = batchEnd(raw, { table: 'message', key: 'id', first: 0 }, CHAT_STRIDE);
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

// What was said in some chats since a message, for digests of it: nothing that anybody has made a persona forget.

/** How many messages of all chats are looked at before other work may run. */
const SAID_AT_ONCE = 2_000;

type SaidWordsRow = Omit<SaidWords, 'byPerson'> & { byPerson: number };

export function saidStore({ raw, read, withBusyRetry: patiently }: Connection): SaidStore {
  const newest = raw.prepare<[], number | null>('select max(id) from message').pluck();
  // The plus sign keeps the stride on the ids, whatever indexes there are on chats.
  const said = raw.prepare<[object], SaidWordsRow>(`
    select chat_id as chatId, author_name as author, author_kind = 'person' as byPerson, text, sent_at as at
    from message
    where id > @after and id <= @upTo and +chat_id in (select value from json_each(@chats)) and text <> ''
      and author_kind in ('person', 'persona') and reaction = 0
      and id > coalesce((select max(reset_at) from view where view.room_id = message.room_id), 0)
    order by id`);

  return {
    newestSaid: () => patiently(() => newest.get() ?? 0),
    async saidSince({ chats, after, upTo }: { chats: readonly ChatId[]; after: number; upTo: number }) {
      const found: SaidWords[] = [];
      for (let from = after; from < upTo; from += SAID_AT_ONCE) {
        const stride = {
          after: from,
          upTo: Math.min(upTo, from + SAID_AT_ONCE),
          chats: JSON.stringify(chats),
        };
        const rows = await read(() => said.all(stride));
        found.push(...rows.map((row) => ({ ...row, byPerson: row.byPerson === 1 })));
        await nextPass();
      }
      return found;
    },
  };
}
