/**
 * Steps 2 and 3 of the route: what there is to do in a room, and who does it. A claim is held while the room has an
 * owner and the claim's fence. The fence moves on with every claim and abort, and when the waiting messages change.
 */
import { Fault } from '../../core/errors.js';
import type { PersonaId, RoomId } from '../../core/ids.js';
import type { Lease, RouteStore } from '../../core/route-store.js';
import type { Step, StoredMessage } from '../../core/transcript.js';
import type { AddUsage } from './amounts.js';
import { CHAT_COLUMNS, type ChatRow, toChat } from './chats.js';
import { columns, type Row } from './columns.js';
import type { Connection } from './connection.js';
import type { turn as turnTable } from './schema-work.js';
import type { ShownRecords } from './shown.js';
import { MESSAGE_COLUMNS, type MessageRow, REVISE_ROOM, toMessage } from './transcript.js';

type RoomVerbs = Pick<RouteStore, 'look' | 'claim' | 'renew' | 'release' | 'begin' | 'note' | 'keepFiles'>;
type Begin = Parameters<RouteStore['begin']>[0];
type Asked = Pick<Begin, 'seen' | 'lease' | 'exchange' | 'spent'>;

/** More messages than this would not fit a prompt; the rest goes to the next turn. */
const MOST_WAITING = 500;

/** The room is free, or ours, or its lease has expired; `@owner`, `@now`. */
const IS_FREE = '(lease_owner is null or lease_owner = @owner or lease_until <= @now)';
/** `@room` and `@fence` are a claim that is held. */
export const IS_HELD = 'room.id = @room and room.fence = @fence and room.lease_owner is not null';
/** The turn to resume in a room: it was interrupted, or the result it waited for has come. */
const UNFINISHED = `coalesce(
  (select id from turn where room_id = room.id and state = 'running'),
  (select id from turn where room_id = room.id and state in ('suspended', 'ready') and state = 'ready'
    order by started_at limit 1))`;

/** An album's items come soon after each other: at most so many messages, of all rooms, between two of them. */
const ALBUM_WITHIN = 500;
/** A turn has taken others of its album. */
const IS_LATE = `message.album is not null and exists (
  select 1 from message as other
  where other.id < message.id and other.id >= message.id - ${ALBUM_WITHIN} and other.room_id = message.room_id
    and other.album = message.album and other.author_id = message.author_id and other.turn_id is not null)`;

type WaitingRow = MessageRow & { isLate: number };
/** A room, with one of the messages that wait in it, if there are any. */
type LookRow = ChatRow & {
  fence: number;
  revision: number;
  exchange: string | null;
  turnsForBots: number;
  unfinished: string | null;
  crashes: number | null;
} & (WaitingRow | { id: null });

type TurnRow = Pick<
  Row<typeof turnTable>,
  'id' | 'personaId' | 'startedAt' | 'attempts' | 'crashes' | 'batch'
>;

export function roomStore(connection: Connection, shown: ShownRecords, addUsage: AddUsage): RoomVerbs {
  const { raw, patiently, write } = connection;
  // One statement: what waits is read together with the fence, and later changes move that on. The limit is a literal:
  // SQLite recompiles a statement whenever a limit is bound.
  const look = raw.prepare<[object], LookRow>(`
    select fence, revision, exchange, turns_for_bots as turnsForBots, turn.id as unfinished, turn.crashes,
      ${CHAT_COLUMNS}, ${MESSAGE_COLUMNS}, ${IS_LATE} as isLate
    from room join chat on chat.id = room.chat_id left join turn on turn.id = ${UNFINISHED}
      left join message on turn.id is null and message.room_id = room.id and message.state = 'waiting'
    where room.id = @room and ${IS_FREE} order by message.id
    limit ${MOST_WAITING + 1}`);
  const lease = raw.prepare<[object]>(`
    update room set lease_owner = @owner, lease_until = @until, fence = fence + 1
    where id = @room and fence = @fence and ${IS_FREE}`);
  const unfinished = raw.prepare<[RoomId], TurnRow>(`
    select ${columns('id personaId startedAt attempts crashes batch', 'turn')}
    from room join turn on turn.id = ${UNFINISHED} where room.id = ?`);
  const goOn = raw.prepare<[string]>(`
    update turn set state = 'running', waits_for = null, waits_until = null where id = ? and state = 'ready'`);
  const steps = raw.prepare<[string], string>('select body from step where turn_id = ? order by n').pluck();
  const batchOf = raw.prepare<[string], MessageRow>(`
    select ${MESSAGE_COLUMNS} from message
    where id in (select value from json_each(?)) and state <> 'waiting' order by id`);
  const renew = raw.prepare<[object]>(`update room set lease_until = @until where ${IS_HELD}`);
  const release = raw.prepare<[object]>(`update room set lease_owner = null where ${IS_HELD}`);

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
  const setFiles = raw
    .prepare<[object], string>(`
      update message set text = @text, attachments = @attachments, tainted = max(tainted, @tainted)
      where id = @id and room_id = @room and exists (select 1 from room where ${IS_HELD})
      returning state`)
    .pluck();
  const reviseRoom = raw.prepare<[RoomId]>(REVISE_ROOM);

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
    const exchange = asked.exchange && JSON.stringify(asked.exchange);
    const bots = forBots === undefined ? null : Number(forBots);
    return statement.get({ room, fence, ...until(asked.lease), exchange, forBots: bots });
  }

  function charge({ seen, lease, spent }: Asked): void {
    if (!spent) return;
    const { usage, ...whose } = spent;
    addUsage({ room: seen.room, ...whose }, { turns: 0, ...usage }, lease.now);
  }

  return {
    look: (room, owner, now) =>
      patiently(() => {
        const rows = look.all({ room, owner, now });
        const [row] = rows;
        if (!row) return null;
        const { fence, revision, exchange, turnsForBots, unfinished, crashes } = row;
        if (unfinished === null && row.id === null && exchange === null) return null;
        const waiting = rows.flatMap((each) => (each.id === null ? [] : toWaiting(each)));
        return {
          room,
          fence,
          revision,
          chat: toChat(row),
          unfinished: unfinished === null ? null : { turnId: unfinished, crashes: crashes ?? 0 },
          waiting: waiting.slice(0, MOST_WAITING),
          more: waiting.length > MOST_WAITING,
          exchange: exchange === null ? null : JSON.parse(exchange),
          turnsForBots,
        };
      }),

    claim: ({ room, fence }, asked) =>
      write(() => {
        if (lease.run({ room, fence, ...until(asked) }).changes === 0) return null;
        const claim = { room, fence: fence + 1 };
        const row = unfinished.get(room);
        if (!row) return { claim, turn: null, batch: [] };
        goOn.run(row.id);
        const { batch, ...turn } = row;
        const done: Step[] = steps.all(row.id).map((body) => JSON.parse(body));
        return {
          claim,
          turn: { ...turn, steps: done, shown: shown.find(row.id).parts },
          batch: batchOf.all(batch).map(toMessage),
        };
      }),

    renew: ({ room, fence }, now, leaseMs) =>
      write(() => renew.run({ room, fence, until: now + leaseMs }).changes === 1, 'single'),

    release: ({ room, fence }) => write(() => void release.run({ room, fence }), 'single'),

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

    keepFiles: ({ room, fence }, { id, text, attachments, tainted }) =>
      write(() => {
        const files = { text, attachments: JSON.stringify(attachments), tainted: tainted ? 1 : 0 };
        const state = setFiles.get({ room, fence, id, ...files });
        if (state === 'done') reviseRoom.run(room);
        return state !== undefined;
      }),
  };
}

function toWaiting(row: WaitingRow): StoredMessage {
  return row.isLate === 1 ? { ...toMessage(row), late: true } : toMessage(row);
}

function until({ owner, now, leaseMs }: Lease) {
  return { owner, now, until: now + leaseMs };
}
