/** Steps 2 and 3 of the route: what there is to do in a room, and a turn that begins there, as the room was seen. */
import { Fault } from '../../core/errors.js';
import type { PersonaId, RoomId } from '../../core/ids.js';
import type { RouteStore } from '../../core/route-store.js';
import type { StoredMessage } from '../../core/transcript.js';
import type { AddUsage } from './amounts.js';
import { CHAT_COLUMNS, type ChatRow, toChat } from './chats.js';
import { IS_FREE, UNFINISHED } from './claims.js';
import type { Connection } from './connection.js';
import { MESSAGE_COLUMNS, type MessageRow, toMessage } from './transcript.js';

type Begin = Parameters<RouteStore['begin']>[0];
type Asked = Pick<Begin, 'seen' | 'lease' | 'exchange' | 'spent'>;

/** More messages than this would not fit a prompt; the rest goes to the next turn. */
const MOST_WAITING = 500;

/** An album's items come soon after each other: at most so many messages, of all rooms, between two of them. */
const ALBUM_WITHIN = 500;
/** A turn has taken others of its album. */
const IS_LATE = `message.album is not null and exists (
  select 1 from message as other
  where other.id < message.id and other.id >= message.id - ${ALBUM_WITHIN} and other.room_id = message.room_id
    and other.album = message.album and other.author_id = message.author_id and other.turn_id is not null)`;

type WaitingRow = MessageRow & { isLate: number };
/** A room, with the first message that waits in it, if there is one. */
type LookRow = ChatRow & {
  fence: number;
  revision: number;
  exchange: string | null;
  turnsForBots: number;
  unfinished: string | null;
  crashes: number | null;
  hasLater: number;
} & (WaitingRow | { id: null });

export function roomStore(
  { raw, patiently, write }: Connection,
  addUsage: AddUsage,
): Pick<RouteStore, 'look' | 'begin' | 'note'> {
  // Usually one message waits. What else does is read after the fence: later changes move that on.
  const look = raw.prepare<[object], LookRow>(`
    select fence, revision, exchange, turns_for_bots as turnsForBots, turn.id as unfinished, turn.crashes,
      ${CHAT_COLUMNS}, ${MESSAGE_COLUMNS}, ${IS_LATE} as isLate, exists (
        select 1 from message as later
        where later.room_id = room.id and later.state = 'waiting' and later.id > message.id) as hasLater
    from room join chat on chat.id = room.chat_id left join turn on turn.id = ${UNFINISHED}
      left join message on turn.id is null and message.room_id = room.id and message.state = 'waiting'
    where room.id = @room and ${IS_FREE} order by message.id limit 1`);
  // The limit is a literal: SQLite recompiles a statement whenever a limit is bound.
  const waitingAfter = raw.prepare<[object], WaitingRow>(`
    select ${MESSAGE_COLUMNS}, ${IS_LATE} as isLate from message
    where room_id = @room and state = 'waiting' and id > @id order by id limit ${MOST_WAITING}`);
  const occupy = (owner: string) =>
    raw
      .prepare<[object], number>(`
        update room set lease_owner = ${owner}, lease_until = @until, fence = fence + 1, exchange = @exchange,
          turns_for_bots = case @forBots when 1 then turns_for_bots + 1 when 0 then 0 else turns_for_bots end
        where id = @room and fence = @fence and ${IS_FREE} returning newest_message`)
      .pluck();
  const occupyForTurn = occupy('@owner');
  const occupyBriefly = occupy('null');
  const addTurn = raw.prepare<[object]>(`
    insert into turn (id, room_id, persona_id, state, started_at, batch)
    values (@id, @room, @personaId, 'running', @now, @batch)`);
  const take = raw.prepare<[object]>(`
    update message set state = 'done',
      turn_id = case when id in (select value from json_each(@taken)) then @turnId else turn_id end
    where id in (select value from json_each(@ids)) and room_id = @room and state = 'waiting'`);
  const hear = raw.prepare<[object]>(`
    insert into heard (room_id, persona_id, addressed, heard_after, message_id)
    select @room, value->>0, value->>1, @heardAfter, value->>2 from json_each(@rows) where true
    on conflict do nothing`);
  /** What `begin` and `note` do to messages: all of them must be waiting; everybody present hears them. */
  function takeAndHear(
    room: RoomId,
    heardAfter: number,
    { turn, noted, hearers }: Pick<Begin, 'noted' | 'hearers'> & { turn: Begin['turn'] | null },
  ): void {
    const taken = turn?.taken ?? [];
    const all = [...taken, ...noted];
    if (all.length > 0) {
      const ids = { taken: JSON.stringify(taken), ids: JSON.stringify(all) };
      if (take.run({ room, turnId: turn?.id ?? null, ...ids }).changes !== all.length)
        throw new Fault('internal', `not all of the messages ${all.join(', ')} are waiting in ${room}`);
    }
    const addressed = turn ? new Set([turn.personaId, ...turn.addressed]) : new Set<PersonaId>();
    const rows: [PersonaId, 0 | 1, number][] = [];
    for (const hearer of addressed) for (const id of taken) rows.push([hearer, 1, id]);
    for (const hearer of hearers) {
      for (const id of addressed.has(hearer) ? noted : all) rows.push([hearer, 0, id]);
    }
    if (rows.length > 0) hear.run({ room, heardAfter, rows: JSON.stringify(rows) });
  }

  /** Claims the room for the turn, or for no longer than this takes. Returns its newest message. */
  function occupied(statement: typeof occupyForTurn, asked: Asked, forBots: boolean | undefined) {
    const { room, fence } = asked.seen;
    const { owner, now, leaseMs } = asked.lease;
    return statement.get({
      ...{ room, fence, owner, now, until: now + leaseMs },
      exchange: asked.exchange && JSON.stringify(asked.exchange),
      forBots: forBots === undefined ? null : Number(forBots),
    });
  }

  function charge({ seen, lease, spent }: Asked): void {
    if (!spent) return;
    const { usage, ...whose } = spent;
    addUsage({ room: seen.room, ...whose }, { turns: 0, ...usage }, lease.now);
  }

  return {
    look: (room, owner, now) =>
      patiently(() => {
        const row = look.get({ room, owner, now });
        if (!row) return null;
        const { fence, revision, exchange, turnsForBots, unfinished, crashes } = row;
        if (unfinished === null && row.id === null && exchange === null) return null;
        const first = row.id === null ? [] : [row];
        const later = row.hasLater === 1 ? waitingAfter.all({ room, id: row.id }) : [];
        const waiting = [...first, ...later];
        return {
          room,
          fence,
          revision,
          chat: toChat(row),
          unfinished: unfinished === null ? null : { turnId: unfinished, crashes: crashes ?? 0 },
          waiting: waiting.slice(0, MOST_WAITING).map(toWaiting),
          more: waiting.length > MOST_WAITING,
          exchange: exchange === null ? null : JSON.parse(exchange),
          turnsForBots,
        };
      }),

    begin: (begin) =>
      write(() => {
        const { seen, lease, turn } = begin;
        const { room, fence } = seen;
        const heardAfter = occupied(occupyForTurn, begin, begin.forBots);
        if (heardAfter === undefined) return null;
        const { id, personaId } = turn;
        if (turn.batch.length === 0) throw new Fault('internal', `turn ${id} has no messages to answer`);
        const batch = JSON.stringify([...turn.batch].sort((a, b) => a - b));
        addTurn.run({ id, room, personaId, batch, now: lease.now });
        takeAndHear(room, heardAfter, begin);
        charge(begin);
        return { room, fence: fence + 1 };
      }),

    note: (note) =>
      write(() => {
        // Bots are counted by the turns that answer them.
        const heardAfter = occupied(occupyBriefly, note, note.forBots === false ? false : undefined);
        if (heardAfter === undefined) return false;
        takeAndHear(note.seen.room, heardAfter, { ...note, turn: null });
        charge(note);
        return true;
      }),
  };
}

function toWaiting(row: WaitingRow): StoredMessage {
  return row.isLate === 1 ? { ...toMessage(row), late: true } : toMessage(row);
}
