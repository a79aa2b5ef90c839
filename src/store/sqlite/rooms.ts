/**
 * Steps 2 and 3 of the route: pending work of a room, its claims, and the start of a turn on the state that was read. A
 * claim is valid while the room has an owner and the claim's fence; every claim, every abort and every change of the
 * waiting messages moves the fence. Also recovery: all pending work, at start and after another process has written.
 */
import { Fault } from '../../core/errors.js';
import { channelOf, type PersonaId, type RoomId } from '../../core/ids.js';
import type { PendingCommand } from '../../core/receipt.js';
import type { Alarm, Claimed, HeardNow, Lease, Pending, RoomState, RoomStore } from '../../core/store.js';
import type { Step, StoredMessage } from '../../core/transcript.js';
import { CHAT_COLUMNS, type ChatRow, toChat } from './chats.js';
import type { Database, Statements } from './connection.js';
import { enterLeftSends, interruptLeft } from './journal.js';
import { shownParts } from './live.js';
import { columns } from './sql.js';
import { MESSAGE_COLUMNS, type MessageRow, reviseRoom, toMessage } from './transcript.js';
import { addUsage, findSetting, setSetting } from './values.js';

/** The room is unclaimed, ours, or its lease has expired; `@owner`, `@now`. */
const IS_FREE = '(lease_owner is null or lease_owner = @owner or lease_until <= @now)';
/** `@room` and `@fence` are a valid claim. */
export const IS_HELD = 'room.id = @room and room.fence = @fence and room.lease_owner is not null';
/** The turn to resume in a room: an interrupted one, or one whose awaited result has come. */
const UNFINISHED = `coalesce(
  (select id from turn where room_id = room.id and state = 'running'),
  (select id from turn where room_id = room.id and state in ('suspended', 'ready') and state = 'ready'
    order by started_at limit 1))`;

export function freeRoom(db: Statements, room: RoomId): void {
  db.run('update room set lease_owner = null where id = ?', room);
}

// ── Pending work ───────────────────────────────────────────────────────────────────────────────────────────

/** More messages would not fit a prompt; the rest goes to the next turn. */
const MOST_WAITING = 500;
/** An album's items arrive close together: at most this many messages (all rooms) lie between two of them. */
const ALBUM_WITHIN = 500;
/** Other items of its album are already in a turn. */
const IS_LATE = `message.album is not null and exists (
  select 1 from message as other
  where other.id < message.id and other.id >= message.id - ${ALBUM_WITHIN} and other.room_id = message.room_id
    and other.album = message.album and other.author_id = message.author_id and other.turn_id is not null)`;

type WaitingRow = MessageRow & { isLate: number };
/** A room with its first waiting message, if any. */
type RoomRow = ChatRow & {
  fence: number;
  revision: number;
  exchange: string | null;
  turnsForBots: number;
  unfinished: string | null;
  crashes: number | null;
  hasLater: number;
} & (WaitingRow | { id: null });

// Usually one message waits. Others are read after the fence, which any later change moves.
const READ_ROOM = `
  select fence, revision, exchange, turns_for_bots as turnsForBots, turn.id as unfinished, turn.crashes,
    ${CHAT_COLUMNS}, ${MESSAGE_COLUMNS}, ${IS_LATE} as isLate, exists (
      select 1 from message as later
      where later.room_id = room.id and later.state = 'waiting' and later.id > message.id) as hasLater
  from room join chat on chat.id = room.chat_id left join turn on turn.id = ${UNFINISHED}
    left join message on turn.id is null and message.room_id = room.id and message.state = 'waiting'
  where room.id = @room and ${IS_FREE} order by message.id limit 1`;
// The limit is a literal: SQLite recompiles a statement whenever a limit is bound.
const WAITING_AFTER = `
  select ${MESSAGE_COLUMNS}, ${IS_LATE} as isLate from message
  where room_id = @room and state = 'waiting' and id > @id order by id limit ${MOST_WAITING}`;

function readRoom(db: Statements, room: RoomId, owner: string, now: number): RoomState | null {
  const row = db.get<RoomRow>(READ_ROOM, { room, owner, now });
  if (!row) return null;
  const { fence, revision, exchange, turnsForBots, unfinished, crashes } = row;
  if (unfinished === null && row.id === null && exchange === null) return null;
  const first = row.id === null ? [] : [row];
  const later = row.hasLater === 1 ? db.all<WaitingRow>(WAITING_AFTER, { room, id: row.id }) : [];
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
}

function toWaiting(row: WaitingRow): StoredMessage {
  return row.isLate === 1 ? { ...toMessage(row), late: true } : toMessage(row);
}

// ── Starting a turn ────────────────────────────────────────────────────────────────────────────────────────

type StartTurn = Parameters<RoomStore['startTurn']>[0];

const occupy = (owner: string) => `
  update room set lease_owner = ${owner}, lease_until = @until, fence = fence + 1, exchange = @exchange,
    turns_for_bots = case @forBots when 1 then turns_for_bots + 1 when 0 then 0 else turns_for_bots end
  where id = @room and fence = @fence and ${IS_FREE} returning newest_message`;
const OCCUPY_FOR_TURN = occupy('@owner');
const OCCUPY_BRIEFLY = occupy('null');
const ADD_TURN = `
  insert into turn (id, room_id, persona_id, state, started_at, batch)
  values (@id, @room, @personaId, 'running', @now, @batch)`;
const TAKE = `
  update message set state = 'done',
    turn_id = case when id in (select value from json_each(@taken)) then @turnId else turn_id end
  where id in (select value from json_each(@ids)) and room_id = @room and state = 'waiting'`;
const HEAR = `
  insert into heard (room_id, persona_id, addressed, heard_after, message_id)
  select @room, value->>0, value->>1, @heardAfter, value->>2 from json_each(@rows) where true
  on conflict do nothing`;

/** Claims the room for the turn, or for the duration of the transaction. Returns the room's newest message. */
function occupied(db: Statements, sql: string, asked: HeardNow, forBots: boolean | undefined) {
  const { room, fence } = asked.seen;
  const { owner, now, leaseMs } = asked.lease;
  const exchange = asked.exchange && JSON.stringify(asked.exchange);
  const bots = forBots === undefined ? null : Number(forBots);
  return db.value<number>(sql, { room, fence, owner, now, until: now + leaseMs, exchange, forBots: bots });
}

/** All of the messages must still be waiting; all hearers then hear them. */
function takeAndHear(
  db: Statements,
  heardAfter: number,
  { seen: { room }, noted, hearers }: HeardNow,
  turn: StartTurn['turn'] | null,
): void {
  const taken = turn?.taken ?? [];
  const all = [...taken, ...noted];
  if (all.length > 0) {
    const ids = { taken: JSON.stringify(taken), ids: JSON.stringify(all) };
    if (db.run(TAKE, { room, turnId: turn?.id ?? null, ...ids }).changes !== all.length) {
      throw new Fault('internal', `not all of the messages ${all.join(', ')} are waiting in ${room}`);
    }
  }
  const addressed = turn ? new Set([turn.personaId, ...turn.addressed]) : new Set<PersonaId>();
  const rows: [PersonaId, 0 | 1, number][] = [];
  for (const hearer of addressed) for (const id of taken) rows.push([hearer, 1, id]);
  for (const hearer of hearers) {
    for (const id of addressed.has(hearer) ? noted : all) rows.push([hearer, 0, id]);
  }
  if (rows.length > 0) db.run(HEAR, { room, heardAfter, rows: JSON.stringify(rows) });
}

function charge(db: Database, { seen, lease, spent }: HeardNow): void {
  if (!spent) return;
  const { usage, ...whose } = spent;
  addUsage(db, { room: seen.room, ...whose }, { turns: 0, ...usage }, lease.now);
}

function startTurn(db: Database, start: StartTurn) {
  const { seen, lease, turn } = start;
  const { room, fence } = seen;
  const heardAfter = occupied(db, OCCUPY_FOR_TURN, start, start.forBots);
  if (heardAfter === undefined) return null;
  const { id, personaId } = turn;
  if (turn.batch.length === 0) throw new Fault('internal', `turn ${id} has no messages to answer`);
  const batch = JSON.stringify([...turn.batch].sort((a, b) => a - b));
  db.run(ADD_TURN, { id, room, personaId, batch, now: lease.now });
  takeAndHear(db, heardAfter, start, turn);
  charge(db, start);
  return { room, fence: fence + 1 };
}

function markHeard(db: Database, note: HeardNow): boolean {
  // A note may reset the count of turns for bots; only a turn increases it.
  const heardAfter = occupied(db, OCCUPY_BRIEFLY, note, note.forBots === false ? false : undefined);
  if (heardAfter === undefined) return false;
  takeAndHear(db, heardAfter, note, null);
  charge(db, note);
  return true;
}

// ── Resuming a turn ────────────────────────────────────────────────────────────────────────────────────────

const CLAIM = `
  update room set lease_owner = @owner, lease_until = @until, fence = fence + 1
  where id = @room and fence = @fence and ${IS_FREE}`;
const UNFINISHED_TURN = `
  select ${columns('id personaId startedAt attempts crashes batch', 'turn')}
  from room join turn on turn.id = ${UNFINISHED} where room.id = ?`;
interface UnfinishedRow {
  id: string;
  personaId: PersonaId;
  startedAt: number;
  attempts: number;
  crashes: number;
  batch: string;
}
const GO_ON = `
  update turn set state = 'running', waits_for = null, waits_until = null where id = ? and state = 'ready'`;
const BATCH = `
  select ${MESSAGE_COLUMNS} from message
  where id in (select value from json_each(?)) and state <> 'waiting' order by id`;
const SET_FILES = `
  update message set text = @text, attachments = @attachments, tainted = max(tainted, @tainted)
  where id = @id and room_id = @room and exists (select 1 from room where ${IS_HELD})
  returning state`;

function claim(db: Statements, seen: { room: RoomId; fence: number }, lease: Lease): Claimed | null {
  const { room, fence } = seen;
  const { owner, now, leaseMs } = lease;
  if (db.run(CLAIM, { room, fence, owner, now, until: now + leaseMs }).changes === 0) return null;
  const claimed = { room, fence: fence + 1 };
  const row = db.get<UnfinishedRow>(UNFINISHED_TURN, room);
  if (!row) return { claim: claimed, turn: null, batch: [] };
  db.run(GO_ON, row.id);
  const { batch, ...turn } = row;
  const bodies = db.column<string>('select body from step where turn_id = ? order by n', row.id);
  const steps = bodies.map((body): Step => JSON.parse(body));
  return {
    claim: claimed,
    turn: { ...turn, steps, shown: shownParts(db, row.id).parts },
    batch: db.all<MessageRow>(BATCH, batch).map(toMessage),
  };
}

// ── Recovery ────────────────────────────────────────────────────────────────────────────────────────────────

/** Another process holds a valid lease; `@owner`, `@now`. */
const IS_OTHERS = 'lease_owner is not null and lease_owner <> @owner and lease_until > @now';
/** Left by a dead process: an earlier one with our name, or one whose lease expired. */
const IS_LEFT = '(lease_owner = @owner or lease_until <= @now)';

/** The rooms with pending work, in this order. */
const PENDING_ROOMS = [
  `select room.id from turn join room on room.id = turn.room_id
    where turn.state = 'running' and not (${IS_OTHERS}) order by crashes, started_at`,
  `select room.id from turn join room on room.id = turn.room_id
    where turn.state in ('suspended', 'ready') and turn.state = 'ready' and not (${IS_OTHERS})`,
  `select room.id from room where exchange is not null and not (${IS_OTHERS})`,
  `select room_id from message join room on room.id = message.room_id
    where message.state = 'waiting' and not (${IS_OTHERS}) group by room_id order by min(message.id)`,
];
const PENDING_COMMANDS = `
  select id, room_id as room from command
  where finished_at is null and (state = 'waiting' or not (${IS_OTHERS}))
  order by id`;
const PENDING_CHATS = `
  select distinct chat_id from outbox as entry
  where finished_at is null and not exists (
    select 1 from outbox
    where outbox.chat_id = entry.chat_id and finished_at is null and state = 'sending' and ${IS_OTHERS})`;
const ALARMS = `
  select waits_for as waitsFor, waits_until as at, room_id as room from turn
  where waits_for is not null and state = 'suspended' and waits_until is not null`;

const LEFT_ROOMS = `
  select room.id, lease_owner as owner, turn.id as turnId
  from room left join turn on turn.room_id = room.id and turn.state = 'running'
  where lease_owner is not null and ${IS_LEFT}`;
interface LeftRoom {
  id: RoomId;
  owner: string;
  turnId: string | null;
}
const DOUBT_SHOWN = `
  update shown set crashes = crashes + 1
  where turn_id = ? and exists (select 1 from json_each(parts) where value->>'platformMessageId' is null)`;
const FREE_COMMANDS = `
  update command set state = 'waiting', crashes = crashes + 1, lease_owner = null
  where finished_at is null and state = 'running' and (lease_owner is null or ${IS_LEFT})`;
const FREE_ENTRIES = `
  update outbox set state = 'waiting', uncertain_crashes = uncertain_crashes + 1, lease_owner = null
  where finished_at is null and state = 'sending' and (lease_owner is null or ${IS_LEFT})`;

function pendingIn(db: Statements, channels: string[], ask: { owner: string; now: number }): Pending {
  const isOurs = (id: string) => channels.includes(channelOf(id));
  const rooms = PENDING_ROOMS.flatMap((sql) => db.column<RoomId>(sql, ask));
  const alarms = db.all<Alarm & { room: RoomId }>(ALARMS).filter(({ room }) => isOurs(room));
  return {
    rooms: [...new Set(rooms)].filter(isOurs),
    commands: db.all<PendingCommand>(PENDING_COMMANDS, ask).filter(({ room }) => isOurs(room)),
    chats: db.column<string>(PENDING_CHATS, ask).filter(isOurs),
    alarms: alarms.map(({ waitsFor, at }) => ({ waitsFor, at })),
  };
}

/**
 * A process that has answered somebody was hardly ended by the turns it began with: its end counts against none of
 * them. A gateway that is killed again and again from outside would give up good messages otherwise.
 */
const MOST_FORGIVEN = 10;
const ANSWERED_SINCE = 'select 1 from room where last_reply_at >= ? limit 1';
const FORGIVE = `update turn set forgiven = forgiven + 1 where id = ? and forgiven < ${MOST_FORGIVEN}`;
const COUNT_CRASH = 'update turn set crashes = crashes + 1 where id = ?';
const startKey = (owner: string) => `recovered.${owner}`;

function recover(db: Database, channels: string[], ask: { owner: string; now: number }): Pending {
  const { owner, now } = ask;
  enterLeftSends(db);
  const left = db.all<LeftRoom>(LEFT_ROOMS, ask);
  for (const dead of new Set([owner, ...left.map((room) => room.owner)])) {
    const startedAt = Number(findSetting(db, startKey(dead)) ?? now);
    const worked = db.get(ANSWERED_SINCE, startedAt) !== undefined;
    for (const { id, turnId } of left.filter((room) => room.owner === dead)) {
      freeRoom(db, id);
      if (turnId === null) continue;
      db.run(DOUBT_SHOWN, turnId);
      if (!worked || db.run(FORGIVE, turnId).changes === 0) db.run(COUNT_CRASH, turnId);
    }
    interruptLeft(db, dead, now);
  }
  setSetting(db, startKey(owner), String(now));
  db.run(FREE_COMMANDS, ask);
  db.run(FREE_ENTRIES, ask);
  return pendingIn(db, channels, ask);
}

export function roomStore(db: Database): RoomStore {
  return {
    readRoom: (room, owner, now) => db.withBusyRetry(() => readRoom(db, room, owner, now)),
    startTurn: (start) => db.write(() => startTurn(db, start)),
    markHeard: (note) => db.write(() => markHeard(db, note)),
    claim: (seen, lease) => db.write(() => claim(db, seen, lease)),
    async renew({ room, fence }, now, leaseMs) {
      const sql = `update room set lease_until = @until where ${IS_HELD}`;
      return (await db.writeOne(sql, { room, fence, until: now + leaseMs })) === 1;
    },
    async release({ room, fence }) {
      await db.writeOne(`update room set lease_owner = null where ${IS_HELD}`, { room, fence });
    },
    keepFiles: ({ room, fence }, { id, text, attachments, tainted }) =>
      db.write(() => {
        const files = { text, attachments: JSON.stringify(attachments), tainted: tainted ? 1 : 0 };
        const state = db.value<string>(SET_FILES, { room, fence, id, ...files });
        if (state === 'done') reviseRoom(db, room);
        return state !== undefined;
      }),
    recover: ({ owner, channels, now }) => db.write(() => recover(db, channels, { owner, now })),
    pending: ({ owner, channels, now }) => db.read(() => pendingIn(db, channels, { owner, now })),
  };
}
