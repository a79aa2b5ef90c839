/** The command lane: claims commands, and applies their effects in the same transaction as the answer. */

import { Fault } from '../core/errors.js';
import { type ChatId, type PersonaId, type RoomId, roomParts } from '../core/ids.js';
import type { StoredCommand } from '../core/receipt.js';
import type { CommandEffect, CommandStore, Lease } from '../core/store.js';
import { beginAnew, showAsBefore } from './anew.js';
import { changeChat, findChat, targetIn, toChat } from './chats.js';
import * as db from './db.js';
import { hearersIn } from './feeds.js';
import { forgetEntries, interruptTurn, SEND_END } from './journal.js';
import { ended, putDeliveries, stopShown, UNKNOWN_IF_IN_DOUBT } from './outbox.js';
import { addOffer, askQuestion, endCallsOf, endPersonalOffers } from './questions.js';
import type { command, turn } from './schema.js';
import { bound, columns, type Some } from './sql.js';
import { stopTasksIn } from './task-events.js';
import { greet, moveFence, reviseRoom } from './transcript.js';
import { takeBack } from './unsay.js';
import { beganBefore, resetView } from './views.js';

const COMMAND =
  'id roomId chatId senderId senderName administrator platformMessageId name argument afterMessage persona tries crashes';
type CommandRow = Some<typeof command, typeof COMMAND>;
const TAKE = `
  update command set state = 'running', tries = tries + 1, lease_owner = @owner, lease_until = @until
  where id = @id and finished_at is null
    and (state = 'waiting' or lease_owner is null or lease_owner = @owner or lease_until <= @now)
  returning ${columns(COMMAND)}`;
// The argument is deleted: `/memory forget TEXT` must not keep the text.
const FINISH = `
  update command set state = 'done', finished_at = @now, argument = '', lease_owner = null
  where id = @id and state <> 'done' returning ${columns('roomId chatId')}`;

function* takeCommand(id: number, { owner, now, leaseMs }: Lease): db.Verb<StoredCommand | null> {
  const row = yield* db.one<CommandRow>(TAKE, { id, owner, now, until: now + leaseMs });
  if (!row) return null;
  const chat = yield* findChat(row.chatId);
  if (!chat) throw new Fault('internal', `command ${id} has no chat in the store`);
  const { roomId: room, senderId, senderName, administrator, chatId: _, persona, ...rest } = row;
  const sender = { id: senderId, name: senderName, administrator: administrator === 1 };
  const stored: StoredCommand = { ...rest, room, chat: toChat(chat), sender };
  if (persona !== null) stored.persona = persona;
  return stored;
}

function* finishCommand(
  finish: Parameters<CommandStore['finishCommand']>[0],
): db.Verb<Awaited<ReturnType<CommandStore['finishCommand']>>> {
  const { id, now, deliveries, refused, effects } = finish;
  const row = yield* db.one<{ roomId: RoomId; chatId: ChatId }>(FINISH, { id, now });
  const chat = row && (yield* findChat(row.chatId));
  if (!row || !chat) return { abortedTurn: null };
  let abortedTurn: string | null = null;
  let isRefused = false;
  for (const effect of effects) {
    const ended = yield* EFFECTS[effect.kind](effect as never, now);
    if (ended === false) isRefused = true;
    else if (typeof ended === 'string') abortedTurn = ended;
  }
  yield* putDeliveries(targetIn(row.roomId, chat, now), isRefused ? (refused ?? []) : deliveries);
  return isRefused ? { abortedTurn, isRefused } : { abortedTurn };
}

type Effect<Kind extends CommandEffect['kind']> = Extract<CommandEffect, { kind: Kind }>;

/** Each returns the turn that it aborted, if any; false if it is refused. */
const EFFECTS: {
  [Kind in CommandEffect['kind']]: (
    effect: Effect<Kind>,
    now: number,
  ) => db.Verb<string | null> | db.Verb<void> | db.Verb<boolean>;
} = {
  *reset(effect, now) {
    yield* endPersonalOffers(effect.room, now);
    return yield* reset(effect, now);
  },
  suppress,
  stop,
  activate: attend,
  invite: attend,
  leave: attend,
  voice: ({ chatId: id, voice }) => changeChat('voice', { id, voice }),
  undone: ({ versionId }) => db.tell('update version set undone = 1 where id = ?', versionId),
  anew: beginAnew,
  unsay: takeBack,
  ask: askQuestion,
  offer: addOffer,
  greet,
};

/** Changes which personas take part. */
function* attend({
  kind,
  chatId: id,
  personaId,
}: Effect<'activate'> | Effect<'invite' | 'leave'>): db.Verb<void> {
  const row = yield* findChat(id);
  if (!row) return;
  const chat = toChat(row);
  const without = (ids: PersonaId[] = []) => ids.filter((other) => other !== personaId);
  const activePersona = kind === 'activate' ? personaId : chat.activePersona;
  const invited = kind === 'activate' ? (chat.invited ?? []) : without(chat.invited);
  const away = without(chat.away);
  if (kind === 'invite') invited.push(personaId);
  if (kind === 'leave') away.push(personaId);
  const some = (ids: PersonaId[]) => (ids.length === 0 ? null : ids);
  const values = { id, activePersona, invited: some(invited), away: some(away) };
  yield* changeChat('activePersona invited away', bound(values));
}

export function commandStore(database: db.Database): CommandStore {
  return {
    takeCommand: (id, lease) => database.write([], () => takeCommand(id, lease)),
    async finishCommand(finish) {
      const room = await database.look(() =>
        db.value<RoomId>('select room_id from command where id = ?', finish.id),
      );
      // A reset also ends the tasks of its room.
      const tasks = finish.effects.some(({ kind }) => kind === 'reset') ? db.TASKS : null;
      return database.write([room, tasks], () => finishCommand(finish));
    },
  };
}

// ── Ends of turns ───────────────────────────────────────────────────────────────────────────────────────────

const STOPPED = 'Somebody stopped this before its outcome was known.';

const OPEN_TURN = 'id roomId personaId batch anew';
type OpenTurn = Some<typeof turn, typeof OPEN_TURN>;
const turnsWhere = (where: string) => `select ${columns(OPEN_TURN)} from turn where room_id = ? and ${where}`;
const RUNNING = turnsWhere(`state = 'running'`);
const SUSPENDED = turnsWhere(`state in ('suspended', 'ready')`);
const END_EXCHANGE = 'update room set exchange = null where id = ?';
const END_TURN = `
  update turn set state = 'aborted', finished_at = @now, waits_for = null, waits_until = null where id = @id`;
const WAIT_AGAIN = `
  update message set state = 'waiting', turn_id = null
  where number_in(id, @batch) and turn_id = @id and author_kind <> 'persona' and id > @upTo
  returning id`;
// These messages will be heard again, perhaps by other personas, so their hearings are deleted.
const UNHEAR = `
  delete from heard where room_id = @room and heard_after > @upTo
    and number_in(message_id, @ids)`;
const SILENCE = `
  update message set quiet = 1 where room_id = @room and state = 'waiting' and id <= @upTo`;
const FORGET_WAITING = `
  update message set state = 'done' where room_id = @room and state = 'waiting' and id <= @upTo`;
// A reply to a forgotten message may have been added after the command was received.
const FORGET_LATE_REPLIES = `
  delete from heard
  where room_id = @room and persona_id = @personaId and addressed = 1 and heard_after >= @upTo
    and message_id in (
      select message.id from message join turn on turn.id = message.turn_id
      where message.id = heard.message_id and author_kind = 'persona' and ${beganBefore('@upTo')})`;
// A reply that is already partly visible is completed, not cut off.
const DROP_REPLIES = `
  update outbox set state = 'dropped', finished_at = @now, platform_message_id = ${UNKNOWN_IF_IN_DOUBT}
  where chat_id = @chatId and finished_at is null and platform_message_id is null and thread_id is not distinct from @threadId
    and exists (
      select 1 from turn
      where turn.id = outbox.turn_id and turn.persona_id = @personaId and ${beganBefore('@upTo')})
  returning ${SEND_END}`;

/** Ends a turn. Its messages count as answered, except those after `upTo`, which wait again. */
function* abort({ anew, ...turn }: OpenTurn, now: number, upTo: number): db.Verb<void> {
  const { id, roomId: room, personaId, batch } = turn;
  const again = yield* db.column<number>(WAIT_AGAIN, { id, batch, upTo });
  if (again.length > 0) {
    yield* db.tell(UNHEAR, { room, upTo, ids: JSON.stringify(again) });
    yield* reviseRoom(room);
  }
  yield* db.tell(END_TURN, { id, now });
  yield* interruptTurn(id, STOPPED, now);
  const { chatId } = roomParts(room);
  yield* endCallsOf(chatId, id, now);
  const chat = yield* findChat(chatId);
  if (!chat) throw new Fault('internal', `room ${room} has no chat in the store`);
  const to = targetIn(room, chat, now);
  if (anew === null) yield* stopShown({ id, personaId }, to);
  else yield* showAsBefore(room, { id, personaId }, JSON.parse(anew), to);
  // If another turn runs beside a suspended one, it continues.
  yield* moveFence(room);
}

function* stop({ room, turnId }: Effect<'stop'>, now: number): db.Verb<string | null> {
  const current = yield* db.one<OpenTurn>(RUNNING, room);
  const turns = [current, ...(yield* db.all<OpenTurn>(SUSPENDED, room))];
  const stopped = turns.find((turn) => turn?.id === turnId);
  if (!stopped) return null;
  yield* abort(stopped, now, Number.MAX_SAFE_INTEGER);
  if (stopped === current) yield* db.tell(END_EXCHANGE, room);
  return turnId;
}

function* suppress({ room, upTo }: Effect<'suppress'>, now: number): db.Verb<string | null> {
  const current = yield* db.one<OpenTurn>(RUNNING, room);
  const [first = upTo + 1] = current ? (JSON.parse(current.batch) as number[]) : [];
  const begun = current && first <= upTo ? current : undefined;
  if (begun) {
    yield* abort(begun, now, upTo);
    yield* db.tell(END_EXCHANGE, room);
  } else yield* moveFence(room);
  yield* db.tell(SILENCE, { room, upTo });
  return begun?.id ?? null;
}

function* reset({ room, personaId, upTo }: Effect<'reset'>, now: number): db.Verb<string | null> {
  const current = yield* db.one<OpenTurn>(RUNNING, room);
  const aborted = current?.personaId === personaId ? current : undefined;
  if (aborted) yield* abort(aborted, now, upTo);
  // Without a turn, a worker may be about to start one with messages that are forgotten here.
  else yield* moveFence(room);
  for (const turn of yield* db.all<OpenTurn>(SUSPENDED, room)) {
    // A suspended turn's messages count as heard, so none of them waits again.
    if (turn.personaId === personaId) yield* abort(turn, now, Number.MAX_SAFE_INTEGER);
  }
  yield* stopTasksIn(room, now);
  yield* db.tell(FORGET_WAITING, { room, upTo });
  yield* db.tell(END_EXCHANGE, room);
  yield* resetView(room, personaId, upTo);
  yield* db.tell(FORGET_LATE_REPLIES, { room, personaId, upTo });
  const { chatId, threadId } = roomParts(room);
  yield* ended(DROP_REPLIES, { chatId, threadId, personaId, upTo, now });
  yield* forgetEntries(room, personaId, upTo);
  yield* reviseRoom(room);
  return aborted?.id ?? null;
}

// ── A room that turned out to belong to another chat ────────────────────────────────────────────────────────

const FORGET_SNAPSHOTS = 'delete from given where room_id in (select id from room where chat_id = ?)';
// Messages scheduled for this room must not go to the chat that it used to belong to.
const CANCEL_JOBS = `
  update job set state = 'cancelled', next_at = null, prompt = '', ended_at = @now
  where chat_id = @chatId and room_id = @room`;

/**
 * Makes every persona that heard the room forget it, as `/reset` does. Also deletes the old chat's prompt snapshots,
 * because some may come from this room. To be called within a transaction.
 */
export function* splitRoom(room: RoomId, now: number): db.Verb<void> {
  const { chatId } = roomParts(room);
  const upTo = yield* db.value<number>('select newest_message from room where id = ?', room);
  const chat = yield* findChat(chatId);
  if (upTo === undefined || chat === undefined) return;
  const hearers = new Set([chat.activePersona, ...(yield* hearersIn(room))]);
  for (const personaId of hearers) yield* reset({ kind: 'reset', room, personaId, upTo }, now);
  yield* db.tell(FORGET_SNAPSHOTS, chatId);
  yield* db.tell(CANCEL_JOBS, { chatId, room, now });
}
