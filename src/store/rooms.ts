/**
 * Steps 2 and 3 of the route: pending work of a room, its claims, and the start of a turn on the state that was read. A
 * claim is valid while the room has an owner and the claim's fence; every claim, every abort and every change of the
 * waiting messages moves the fence. Also recovery: all pending work, at start and after another process has written.
 */

import type { Anew } from '../core/anew.js';
import type { Zone } from '../core/dates.js';
import { Fault } from '../core/errors.js';
import { channelOf, type RoomId } from '../core/ids.js';
import type { PendingCommand } from '../core/receipt.js';
import type {
  Alarm,
  Claim,
  Claimed,
  HeardNow,
  Lease,
  Pending,
  RoomState,
  RoomStore,
  StoredTurn,
} from '../core/store.js';
import type { StoredMessage } from '../core/transcript.js';
import { leaveVersions, shownAtFirst, stepsOf } from './anew.js';
import { CHAT_COLUMNS, type ChatRow, toChat } from './chats.js';
import * as db from './db.js';
import { interruptLeft } from './journal.js';
import { shownParts } from './outbox.js';
import { bound, columns } from './sql.js';
import { MESSAGE_COLUMNS, type MessageRow, noteHeard, reviseRoom, toMessage } from './transcript.js';
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

export function* freeRoom(room: RoomId): db.Verb<void> {
  yield* db.tell('update room set lease_owner = null where id = ?', room);
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

function* readRoom(room: RoomId, owner: string, now: number): db.Verb<RoomState | null> {
  const row = yield* db.one<RoomRow>(READ_ROOM, { room, owner, now });
  if (!row) return null;
  const { fence, revision, exchange, turnsForBots, unfinished, crashes } = row;
  if (unfinished === null && row.id === null && exchange === null) return null;
  const first = row.id === null ? [] : [row];
  const later = row.hasLater === 1 ? yield* db.all<WaitingRow>(WAITING_AFTER, { room, id: row.id }) : [];
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

const OCCUPY = `
  update room set lease_owner = @holder, lease_until = @until, fence = fence + 1, exchange = @exchange,
    turns_for_bots = case cast(@forBots as bigint) when 1 then turns_for_bots + 1 when 0 then 0 else turns_for_bots end
  where id = @room and fence = @fence and ${IS_FREE} returning newest_message as heardAfter, anew`;
const ADD_TURN = `
  insert into turn (id, room_id, persona_id, state, started_at, batch, first_message)
  values (@id, @room, @personaId, 'running', @now, @batch, @first)`;
const TAKE = `
  update message set state = 'done',
    turn_id = case when number_in(id, @taken) then @turnId else turn_id end
  where number_in(id, @ids) and room_id = @room and state = 'waiting'`;

/** Claims the room for the turn, or without one for the duration of the transaction. */
function* hear(zone: Zone, heard: HeardNow): db.Verb<Claim | null> {
  const { seen, lease, turn, noted, hearers, exchange, spent } = heard;
  const { room, fence } = seen;
  const { owner, now } = lease;
  const occupied = yield* db.one<{ heardAfter: number; anew: number | null }>(
    OCCUPY,
    bound({
      ...{ room, fence, owner, now, exchange, holder: turn && owner, until: now + lease.leaseMs },
      // Only a turn increases the count of turns for bots.
      forBots: turn === null && heard.forBots ? null : heard.forBots,
    }),
  );
  if (occupied === undefined) return null;
  const { heardAfter, anew } = occupied;
  if (turn) {
    const { id, personaId } = turn;
    const batch = [...turn.batch].sort((a, b) => a - b);
    const [first] = batch;
    if (first === undefined) throw new Fault('internal', `turn ${id} has no messages to answer`);
    yield* db.tell(ADD_TURN, { id, room, personaId, batch: JSON.stringify(batch), first, now });
  }
  const taken = turn?.taken ?? [];
  const all = [...taken, ...noted];
  if (all.length > 0) {
    const ids = { taken: JSON.stringify(taken), ids: JSON.stringify(all) };
    if ((yield* db.run(TAKE, { room, turnId: turn?.id ?? null, ...ids })) !== all.length) {
      throw new Fault('internal', `not all of the messages ${all.join(', ')} are waiting in ${room}`);
    }
  }
  if (anew !== null) yield* leaveVersions(room, anew, all, now);
  const addressed = new Set(turn ? [turn.personaId, ...turn.addressed] : []);
  for (const personaId of addressed) yield* noteHeard(room, personaId, true, heardAfter, taken);
  for (const personaId of hearers) {
    yield* noteHeard(room, personaId, false, heardAfter, addressed.has(personaId) ? noted : all);
  }
  if (spent) {
    const { usage, ...whose } = spent;
    yield* addUsage(zone, { room, ...whose }, { turns: 0, ...usage }, now);
  }
  return { room, fence: fence + 1 };
}

// ── Resuming a turn ────────────────────────────────────────────────────────────────────────────────────────

const CLAIM = `
  update room set lease_owner = @owner, lease_until = @until, fence = fence + 1
  where id = @room and fence = @fence and ${IS_FREE}`;
const UNFINISHED_TURN = `
  select ${columns('id personaId startedAt attempts crashes batch anew', 'turn')}
  from room join turn on turn.id = ${UNFINISHED} where room.id = ?`;
type UnfinishedRow = Omit<StoredTurn, 'steps' | 'shown' | 'anew'> & { batch: string; anew: string | null };
const GO_ON = `
  update turn set state = 'running', waits_for = null, waits_until = null where id = ? and state = 'ready'`;
const BATCH = `
  select ${MESSAGE_COLUMNS} from message
  where number_in(id, ?) and state <> 'waiting' order by id`;
const SET_FILES = `
  update message set text = @text, attachments = @attachments, tainted = larger(tainted, @tainted)
  where id = @id and room_id = @room and exists (select 1 from room where ${IS_HELD})
  returning state`;

function* claim(seen: { room: RoomId; fence: number }, lease: Lease): db.Verb<Claimed | null> {
  const { room, fence } = seen;
  const { owner, now, leaseMs } = lease;
  if ((yield* db.run(CLAIM, { room, fence, owner, now, until: now + leaseMs })) === 0) return null;
  const claimed = { room, fence: fence + 1 };
  const row = yield* db.one<UnfinishedRow>(UNFINISHED_TURN, room);
  if (!row) return { claim: claimed, turn: null, batch: [] };
  yield* db.tell(GO_ON, row.id);
  const { batch, anew: how, ...turn } = row;
  const anew: Anew | undefined = how === null ? undefined : JSON.parse(how);
  const steps = yield* stepsOf(row.id);
  const { parts: shown } = yield* shownAtFirst(room, row.id, anew);
  return {
    claim: claimed,
    turn: { ...turn, steps, shown, ...(anew && { anew }) },
    batch: (yield* db.all<MessageRow>(BATCH, batch)).map(toMessage),
  };
}

// ── Recovery ────────────────────────────────────────────────────────────────────────────────────────────────

/** Another process holds a valid lease; `@owner`, `@now`. */
const IS_OTHERS = 'lease_owner is not null and lease_owner <> @owner and lease_until > @now';
/** Left by a dead process: an earlier one with our name, or one whose lease expired. */
const IS_LEFT = '(lease_owner = @owner or lease_until <= @now)';

/** Commands, chats with deliveries, alarms, and the rooms with other pending work, in this order. */
const PENDING = [
  `select id, room_id as room from command
    where finished_at is null and (state = 'waiting' or not (${IS_OTHERS}))
    order by id`,
  `select distinct chat_id as chat from outbox as entry
    where finished_at is null and not exists (
      select 1 from outbox
      where outbox.chat_id = entry.chat_id and finished_at is null and state = 'sending' and ${IS_OTHERS})`,
  `select waits_for as waitsFor, waits_until as at, room_id as room from turn
    where waits_for is not null and state = 'suspended' and waits_until is not null`,
  `select room.id as room from turn join room on room.id = turn.room_id
    where turn.state = 'running' and not (${IS_OTHERS}) order by crashes, started_at`,
  `select room.id as room from turn join room on room.id = turn.room_id
    where turn.state in ('suspended', 'ready') and turn.state = 'ready' and not (${IS_OTHERS})`,
  `select room.id as room from room where exchange is not null and not (${IS_OTHERS})`,
  `select room_id as room from message join room on room.id = message.room_id
    where message.state = 'waiting' and not (${IS_OTHERS}) group by room_id order by min(message.id)`,
];
type InRoom = { room: RoomId };
type PendingRows = [PendingCommand, { chat: string }, Alarm & InRoom, InRoom, InRoom, InRoom, InRoom];

const LEFT_ROOMS = `
  select room.id as room, fence, lease_owner as owner, turn.id as turnId
  from room left join turn on turn.room_id = room.id and turn.state = 'running'
  where lease_owner is not null and ${IS_LEFT}`;
type LeftRoom = Claim & { owner: string; turnId: string | null };
// Another process may have taken it meanwhile.
const FREE_LEFT = `
  update room set lease_owner = null
  where id = @room and fence = @fence and lease_owner is not null and ${IS_LEFT}`;
const DOUBT_SHOWN = 'update shown set crashes = crashes + 1 where turn_id = ?';
const LEFT_COMMANDS = `
  select id, room_id as place from command
  where finished_at is null and state = 'running' and (lease_owner is null or ${IS_LEFT})`;
const FREE_COMMANDS = `
  update command set state = 'waiting', crashes = crashes + 1, lease_owner = null where number_in(id, @ids)`;
const LEFT_ENTRIES = `
  select id, chat_id as place from outbox
  where finished_at is null and state = 'sending' and (lease_owner is null or ${IS_LEFT})`;
const FREE_ENTRIES = `
  update outbox set state = 'waiting', uncertain_crashes = uncertain_crashes + 1, lease_owner = null
  where number_in(id, @ids)`;

function* pendingIn(channels: string[], ask: { owner: string; now: number }): db.Verb<Pending> {
  const isOurs = (id: string) => channels.includes(channelOf(id));
  const [commands, chats, alarms, ...inRooms] = yield* db.together<PendingRows>(PENDING, ask);
  const rooms = new Set(inRooms.flat().map(({ room }) => room));
  const due = alarms.filter(({ room }) => isOurs(room));
  return {
    rooms: [...rooms].filter(isOurs),
    commands: commands.filter(({ room }) => isOurs(room)),
    chats: chats.map(({ chat }) => chat).filter(isOurs),
    alarms: due.map(({ waitsFor, at }) => ({ waitsFor, at })),
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

/** In these channels alone: others may be another gateway's, which has the same name for what it claims. */
function* recover(
  channels: string[],
  ask: { owner: string; now: number },
): db.Verb<{ pending: Pending; takenOver: Record<'room' | 'command' | 'delivery', number> }> {
  const { owner, now } = ask;
  const takenOver = { room: 0, command: 0, delivery: 0 };
  const isOurs = (id: string) => channels.includes(channelOf(id));
  const left = (yield* db.all<LeftRoom>(LEFT_ROOMS, ask)).filter(({ room }) => isOurs(room));
  for (const dead of new Set([owner, ...left.map((each) => each.owner)])) {
    const startedAt = Number((yield* findSetting(startKey(dead))) ?? now);
    const worked = (yield* db.one(ANSWERED_SINCE, startedAt)) !== undefined;
    for (const { room, fence, turnId } of left.filter((each) => each.owner === dead)) {
      const isFreed = (yield* db.run(FREE_LEFT, { room, fence, ...ask })) === 1;
      if (!isFreed || turnId === null) continue;
      takenOver.room += 1;
      const { parts } = yield* shownParts(turnId);
      if (parts.some((part) => part.platformMessageId === null)) yield* db.tell(DOUBT_SHOWN, turnId);
      if (!worked || (yield* db.run(FORGIVE, turnId)) === 0) yield* db.tell(COUNT_CRASH, turnId);
    }
    yield* interruptLeft(dead, isOurs, now);
  }
  yield* setSetting(startKey(owner), String(now));
  for (const [kind, find, free] of [
    ['command', LEFT_COMMANDS, FREE_COMMANDS],
    ['delivery', LEFT_ENTRIES, FREE_ENTRIES],
  ] as const) {
    const found = (yield* db.all<{ id: number; place: string }>(find, ask)).filter(({ place }) =>
      isOurs(place),
    );
    if (found.length > 0) yield* db.tell(free, { ids: JSON.stringify(found.map(({ id }) => id)) });
    takenOver[kind] = found.length;
  }
  return { pending: yield* pendingIn(channels, ask), takenOver };
}

export function roomStore(database: db.Database): RoomStore {
  return {
    readRoom: (room, owner, now) => database.look(() => readRoom(room, owner, now)),
    hear: (heard) =>
      database.write([heard.seen.room, heard.spent?.personId], () => hear(database.zone, heard)),
    claim: (seen, lease) => database.write(seen.room, () => claim(seen, lease)),
    async hold({ room, fence }, until) {
      const change = until === null ? 'lease_owner = null' : 'lease_until = @until';
      const sql = `update room set ${change} where ${IS_HELD}`;
      return (await database.write(room, () => db.run(sql, { room, fence, until }))) === 1;
    },
    keepFiles: ({ room, fence }, { id, text, attachments, tainted }) =>
      database.write(room, function* () {
        const files = { text, attachments: JSON.stringify(attachments), tainted: tainted ? 1 : 0 };
        const state = yield* db.value<string>(SET_FILES, { room, fence, id, ...files });
        if (state === 'done') yield* reviseRoom(room);
        return state !== undefined;
      }),
    async pending({ channels, atStart, ...ask }) {
      if (!atStart) return database.read(() => pendingIn(channels, ask));
      const { pending, takenOver } = await database.write(db.UPKEEP, () => recover(channels, ask));
      for (const [kind, count] of Object.entries(takenOver))
        database.told?.metrics.count('takeovers_total', { kind }, count);
      return pending;
    },
  };
}
