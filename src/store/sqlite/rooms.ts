/**
 * Steps 2 and 3 of the route: claims of rooms. One is held while the room has an owner and the claim's fence, which moves on
 * with every claim and abort, and when the waiting messages change. A new turn is begun with its claim at once (`rooms.ts`);
 * here one is claimed to go on, or for slow work before.
 */

import { Fault } from '../../core/errors.js';
import { channelOf, type PersonaId, type RoomId } from '../../core/ids.js';
import type { PendingCommand } from '../../core/receipt.js';
import type { Alarm, Pending, RouteStore } from '../../core/route-store.js';
import type { Step, StoredMessage } from '../../core/transcript.js';
import { CHAT_COLUMNS, type ChatRow, toChat } from './chats.js';
import type { Connection } from './connection.js';
import type { Journal } from './journal.js';
import type { ShownRecords } from './live.js';
import type { turn as turnTable } from './schema-work.js';
import { columns, excluded, insertInto, type Row } from './sql.js';
import { MESSAGE_COLUMNS, type MessageRow, REVISE_ROOM, toMessage } from './transcript.js';
import type { AddUsage } from './values.js';

/** The room is free, or ours, or its lease has expired; `@owner`, `@now`. */
const IS_FREE = '(lease_owner is null or lease_owner = @owner or lease_until <= @now)';
/** `@room` and `@fence` are a claim that is held. */
export const IS_HELD = 'room.id = @room and room.fence = @fence and room.lease_owner is not null';
/** Whoever held it. */
export const FREE_ROOM = 'update room set lease_owner = null where id = ?';
/** The turn to resume in a room: it was interrupted, or the result it waited for has come. */
const UNFINISHED = `coalesce(
  (select id from turn where room_id = room.id and state = 'running'),
  (select id from turn where room_id = room.id and state in ('suspended', 'ready') and state = 'ready'
    order by started_at limit 1))`;

type UnfinishedRow = Pick<
  Row<typeof turnTable>,
  'id' | 'personaId' | 'startedAt' | 'attempts' | 'crashes' | 'batch'
>;

export function claimStore(
  { raw, write }: Connection,
  shown: ShownRecords,
): Pick<RouteStore, 'claim' | 'renew' | 'release' | 'keepFiles'> {
  const lease = raw.prepare<[object]>(`
    update room set lease_owner = @owner, lease_until = @until, fence = fence + 1
    where id = @room and fence = @fence and ${IS_FREE}`);
  const unfinished = raw.prepare<[RoomId], UnfinishedRow>(`
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
  const setFiles = raw
    .prepare<[object], string>(`
      update message set text = @text, attachments = @attachments, tainted = max(tainted, @tainted)
      where id = @id and room_id = @room and exists (select 1 from room where ${IS_HELD})
      returning state`)
    .pluck();
  const reviseRoom = raw.prepare<[RoomId]>(REVISE_ROOM);

  return {
    claim: ({ room, fence }, { owner, now, leaseMs }) =>
      write(() => {
        if (lease.run({ room, fence, owner, now, until: now + leaseMs }).changes === 0) return null;
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

    keepFiles: ({ room, fence }, { id, text, attachments, tainted }) =>
      write(() => {
        const files = { text, attachments: JSON.stringify(attachments), tainted: tainted ? 1 : 0 };
        const state = setFiles.get({ room, fence, id, ...files });
        if (state === 'done') reviseRoom.run(room);
        return state !== undefined;
      }),
  };
}

// Steps 2 and 3 of the route: what there is to do in a room, and a turn that begins there, as the room was seen.

type StartTurn = Parameters<RouteStore['startTurn']>[0];
type RoomAsk = Pick<StartTurn, 'seen' | 'lease' | 'exchange' | 'spent'>;

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
  { raw, withBusyRetry: patiently, write }: Connection,
  addUsage: AddUsage,
): Pick<RouteStore, 'readRoom' | 'startTurn' | 'markHeard'> {
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
  /** What `startTurn` and `markHeard` do to messages: all of them must be waiting; everybody present hears them. */
  function takeAndHear(
    room: RoomId,
    heardAfter: number,
    { turn, noted, hearers }: Pick<StartTurn, 'noted' | 'hearers'> & { turn: StartTurn['turn'] | null },
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
  function occupied(statement: typeof occupyForTurn, asked: RoomAsk, forBots: boolean | undefined) {
    const { room, fence } = asked.seen;
    const { owner, now, leaseMs } = asked.lease;
    return statement.get({
      ...{ room, fence, owner, now, until: now + leaseMs },
      exchange: asked.exchange && JSON.stringify(asked.exchange),
      forBots: forBots === undefined ? null : Number(forBots),
    });
  }

  function charge({ seen, lease, spent }: RoomAsk): void {
    if (!spent) return;
    const { usage, ...whose } = spent;
    addUsage({ room: seen.room, ...whose }, { turns: 0, ...usage }, lease.now);
  }

  return {
    readRoom: (room, owner, now) =>
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

    startTurn: (begin) =>
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

    markHeard: (note) =>
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

// Recovery: finds all pending work when a process starts, or when another one has written.

/**
 * After this many crashes a turn is a suspect and runs alone. From then on a crash counts against it only if no other
 * turn was answered since the process started: otherwise a gateway that is killed repeatedly from outside would give up
 * good messages. At most `MOST_FORGIVEN` crashes are forgiven.
 */
const SUSPECT = 3;
const MOST_FORGIVEN = 5;

const PROCESS_ENDED = 'The gateway ended while this ran: its outcome is unknown. It is not done again.';

type RecoveryVerbs = Pick<RouteStore, 'recover' | 'pending'>;

/** Another process holds it, and its lease is valid; `@owner`, `@now`. */
const IS_OTHERS = 'lease_owner is not null and lease_owner <> @owner and lease_until > @now';
/** A dead process held it: an earlier one with our name, or one whose lease expired. */
const IS_LEFT = '(lease_owner = @owner or lease_until <= @now)';

export function recoveryStore({ raw, read, write }: Connection, journal: Journal): RecoveryVerbs {
  const rooms = (from: string) =>
    raw
      .prepare<[object], RoomId>(`
      select room.id from ${from} and not (${IS_OTHERS})`)
      .pluck();
  // Fewest crashes first: no suspect is tried twice before every other turn was tried once.
  const unfinished = raw
    .prepare<[object], RoomId>(`
      select room.id from turn join room on room.id = turn.room_id
      where turn.state = 'running' and not (${IS_OTHERS}) order by crashes, started_at`)
    .pluck();
  const ready = rooms(`turn join room on room.id = turn.room_id
    where turn.state in ('suspended', 'ready') and turn.state = 'ready'`);
  const goingOn = rooms('room where exchange is not null');
  const waiting = raw
    .prepare<[object], RoomId>(`
      select room_id from message join room on room.id = message.room_id
      where message.state = 'waiting' and not (${IS_OTHERS}) group by room_id order by min(message.id)`)
    .pluck();
  const commands = raw.prepare<[object], PendingCommand>(`
    select id, room_id as room from command
    where finished_at is null and (state = 'waiting' or not (${IS_OTHERS}))
    order by id`);
  const chats = raw
    .prepare<[object], string>(`
      select distinct chat_id from outbox as entry
      where finished_at is null and not exists (
        select 1 from outbox
        where outbox.chat_id = entry.chat_id and finished_at is null and state = 'sending' and ${IS_OTHERS})`)
    .pluck();
  const alarms = raw.prepare<[], Alarm & { room: RoomId }>(`
    select waits_for as waitsFor, waits_until as at, room_id as room from turn
    where waits_for is not null and state = 'suspended' and waits_until is not null`);

  const leftRooms = raw.prepare<[object], { id: RoomId; owner: string; turnId: string | null }>(`
    select room.id, lease_owner as owner, turn.id as turnId
    from room left join turn on turn.room_id = room.id and turn.state = 'running'
    where lease_owner is not null and ${IS_LEFT}`);
  const answeredSince = raw.prepare<[number]>('select 1 from room where last_reply_at >= ? limit 1');
  const forgive = raw.prepare<[string]>(`
    update turn set forgiven = forgiven + 1 where id = ? and crashes >= ${SUSPECT} and forgiven < ${MOST_FORGIVEN}`);
  const blame = raw.prepare<[string]>('update turn set crashes = crashes + 1 where id = ?');
  const doubtShown = raw.prepare<[string]>(`
    update shown set crashes = crashes + 1
    where turn_id = ? and exists (select 1 from json_each(parts) where value->>'platformMessageId' is null)`);
  const free = raw.prepare<[RoomId]>(FREE_ROOM);
  const suspects = raw.prepare<[], { id: string; room: RoomId; leaseOwner: string | null }>(`
    select turn.id, room.id as room, lease_owner as leaseOwner from turn join room on room.id = turn.room_id
    where turn.state = 'running' and crashes >= ${SUSPECT}`);
  const clear = raw.prepare<[string]>(`update turn set crashes = ${SUSPECT}, forgiven = 0 where id = ?`);
  const startOf = raw.prepare<[string], string>('select value from setting where key = ?').pluck();
  const noteStart = raw.prepare<[object]>(`
    ${insertInto('setting', 'key value')} on conflict do update set ${excluded('value')}`);
  const freeCommands = raw.prepare<[object]>(`
    update command set state = 'waiting', crashes = crashes + 1, lease_owner = null
    where finished_at is null and state = 'running' and (lease_owner is null or ${IS_LEFT})`);
  const freeEntries = raw.prepare<[object]>(`
    update outbox set state = 'waiting', uncertain_crashes = uncertain_crashes + 1, lease_owner = null
    where finished_at is null and state = 'sending' and (lease_owner is null or ${IS_LEFT})`);

  function pendingIn(channels: string[], ask: { owner: string; now: number }): Pending {
    const isOurs = (id: string) => channels.includes(channelOf(id));
    const all = [unfinished, ready, goingOn, waiting].flatMap((statement) => statement.all(ask));
    return {
      rooms: [...new Set(all)].filter(isOurs),
      commands: commands.all(ask).filter(({ room }) => isOurs(room)),
      chats: chats.all(ask).filter(isOurs),
      alarms: alarms
        .all()
        .filter(({ room }) => isOurs(room))
        .map(({ waitsFor, at }) => ({ waitsFor, at })),
    };
  }

  /** Releases the rooms that a dead process held, together with the turns it was running. */
  function freeRooms(held: { id: RoomId; turnId: string | null }[], startedAt: number): void {
    const othersWereAnswered = answeredSince.get(startedAt) !== undefined;
    clearSuspects(held.map(({ id }) => id));
    for (const { id, turnId } of held) {
      free.run(id);
      if (turnId === null) continue;
      doubtShown.run(turnId);
      if (!othersWereAnswered || forgive.run(turnId).changes === 0) blame.run(turnId);
    }
  }

  /**
   * If a process crashed while it worked on others and not on the suspects, something else caused it: the crashes
   * counted since they run alone are taken back. If it worked only on suspects, each of them may be the cause in turn.
   */
  function clearSuspects(held: RoomId[]): void {
    const all = suspects.all();
    if (held.every((id) => all.some(({ room }) => room === id))) return;
    for (const { id, leaseOwner } of all) if (leaseOwner === null) clear.run(id);
  }

  return {
    recover: ({ owner, channels, now }) =>
      write(() => {
        journal.sendsLeft();
        const left = leftRooms.all({ owner, now });
        for (const dead of new Set([owner, ...left.map((room) => room.owner)])) {
          const startedAt = Number(startOf.get(`recovered.${dead}`) ?? now);
          freeRooms(
            left.filter((room) => room.owner === dead),
            startedAt,
          );
          journal.interruptLeft(dead, PROCESS_ENDED, now);
        }
        noteStart.run({ key: `recovered.${owner}`, value: String(now) });
        freeCommands.run({ owner, now });
        freeEntries.run({ owner, now });
        return pendingIn(channels, { owner, now });
      }),
    pending: ({ owner, channels, now }) => read(() => pendingIn(channels, { owner, now })),
  };
}
