/** Recovery: finds all pending work when a process starts, or when another one has written. */
import { channelOf, type RoomId } from '../../core/ids.js';
import type { PendingCommand } from '../../core/receipt.js';
import type { Alarm, Pending, RouteStore } from '../../core/route-store.js';
import { FREE_ROOM } from './claims.js';
import { excluded, insertInto } from './columns.js';
import type { Connection } from './connection.js';
import type { Journal } from './journal.js';

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
