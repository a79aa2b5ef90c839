/**
 * The command lane: claims commands, and applies their effects on a room, its turns and a persona's view in one
 * transaction with the answer.
 */
import { Fault } from '../../core/errors.js';
import { type ChatId, type PersonaId, type RoomId, roomParts } from '../../core/ids.js';
import type { StoredCommand } from '../../core/receipt.js';
import type { CommandEffect, RouteStore } from '../../core/route-store.js';
import { type Chats, toChat } from './chats.js';
import type { Connection } from './connection.js';
import { type Journal, turnOf } from './journal.js';
import type { ShownRecords } from './live.js';
import { type Deliver, UNKNOWN_IF_IN_DOUBT } from './outbox.js';
import type { AskedCalls, Offers, Questions } from './questions.js';
import type { command, turn } from './schema-work.js';
import { columns, type Row } from './sql.js';
import type { TaskCourse } from './task-events.js';
import { type Greet, REVISE_ROOM } from './transcript.js';
import { beganBefore, type Views } from './views.js';

type CommandVerbs = Pick<RouteStore, 'takeCommand' | 'finishCommand'>;
type Effect<Kind extends CommandEffect['kind']> = Extract<CommandEffect, { kind: Kind }>;

const COMMAND =
  'id roomId chatId senderId senderName administrator platformMessageId name argument afterMessage persona tries crashes';
type CommandRow = Omit<
  Row<typeof command>,
  'account' | 'moves' | 'receivedAt' | 'state' | 'finishedAt' | 'twin' | 'leaseOwner' | 'leaseUntil'
>;

export function commandStore(
  connection: Connection,
  chats: Chats,
  deliver: Deliver,
  questions: Questions,
  offers: Offers,
  endings: Endings,
  greet: Greet,
): CommandVerbs {
  const { raw, write } = connection;
  const take = raw.prepare<[object], CommandRow>(`
    update command set state = 'running', tries = tries + 1, lease_owner = @owner, lease_until = @until
    where id = @id and finished_at is null
      and (state = 'waiting' or lease_owner is null or lease_owner = @owner or lease_until <= @now)
    returning ${columns(COMMAND)}`);
  // The argument is deleted: `/memory forget TEXT` must not keep the text.
  const finish = raw.prepare<[object], Pick<CommandRow, 'roomId' | 'chatId'>>(`
    update command set state = 'done', finished_at = @now, argument = '', lease_owner = null
    where id = @id and state <> 'done' returning ${columns('roomId chatId')}`);
  const undo = raw.prepare<[string]>('update version set undone = 1 where id = ?');

  function attend(
    { chatId, personaId }: Effect<'activate'> | Effect<'invite' | 'leave'>,
    change: 'activePersona' | 'invited' | 'away',
  ): void {
    const row = chats.find(chatId);
    if (!row) return;
    const { invited = [], away = [] } = toChat(row);
    if (change === 'activePersona') {
      chats.attend(chatId, { activePersona: personaId, invited, away: without(away, personaId) });
    } else {
      const others = { invited: without(invited, personaId), away: without(away, personaId) };
      chats.attend(chatId, { ...others, [change]: [...others[change], personaId] });
    }
  }

  function apply(effect: CommandEffect, now: number): string | null {
    switch (effect.kind) {
      case 'reset':
        offers.endPersonal(effect.room, now);
        return endings.reset(effect, now);
      case 'suppress':
        return endings.suppress(effect, now);
      case 'stop':
        return endings.stop(effect, now);
      case 'activate':
        attend(effect, 'activePersona');
        return null;
      case 'invite':
        attend(effect, 'invited');
        return null;
      case 'leave':
        attend(effect, 'away');
        return null;
      case 'voice':
        chats.setVoice(effect.chatId, effect.voice);
        return null;
      case 'undone':
        undo.run(effect.versionId);
        return null;
      case 'ask':
        questions.ask(effect);
        return null;
      case 'offer':
        offers.add(effect);
        return null;
      case 'greet':
        greet(effect, now);
        return null;
    }
  }

  return {
    takeCommand: (id, { owner, now, leaseMs }) =>
      write(() => {
        const row = take.get({ id, owner, now, until: now + leaseMs });
        if (!row) return null;
        const chat = chats.find(row.chatId);
        if (!chat) throw new Fault('internal', `command ${id} has no chat in the store`);
        const { roomId: room, senderId, senderName, administrator, chatId: _, persona, ...rest } = row;
        const sender = { id: senderId, name: senderName, administrator: administrator === 1 };
        const stored: StoredCommand = { ...rest, room, chat: toChat(chat), sender };
        if (persona !== null) stored.persona = persona;
        return stored;
      }),

    finishCommand: ({ id, now, deliveries, effects: asked }) =>
      write(() => {
        const row = finish.get({ id, now });
        const chat = row && chats.find(row.chatId);
        if (!row || !chat) return { abortedTurn: null };
        let abortedTurn: string | null = null;
        for (const effect of asked) abortedTurn = apply(effect, now) ?? abortedTurn;
        const { chatId, channel, address, kind } = chat;
        const { threadId } = roomParts(row.roomId);
        deliver.put({ chatId, channel, address, threadId, kind, now }, deliveries);
        return { abortedTurn };
      }),
  };
}

function without(ids: PersonaId[], id: PersonaId): PersonaId[] {
  return ids.filter((other) => other !== id);
}

const STOPPED = 'Somebody stopped this before its outcome was known.';

type TurnRow = Pick<Row<typeof turn>, 'id' | 'roomId' | 'personaId' | 'batch'>;

type Endings = ReturnType<typeof endingsOf>;

/** The effects that end turns; each returns the turn that it aborted, if any. To be called within a transaction. */
export function endingsOf(
  { raw }: Connection,
  chats: Chats,
  shown: ShownRecords,
  views: Views,
  { journal, asked, course }: { journal: Journal; asked: AskedCalls; course: TaskCourse },
) {
  const turns = (where: string) =>
    raw.prepare<[RoomId], TurnRow>(
      `select ${columns('id roomId personaId batch')} from turn where room_id = ? and ${where}`,
    );
  const running = turns(`state = 'running'`);
  const suspended = turns(`state in ('suspended', 'ready')`);
  const moveFenceOn = raw.prepare<[RoomId]>(
    'update room set fence = fence + 1, lease_owner = null where id = ?',
  );
  const revise = raw.prepare<[RoomId]>(REVISE_ROOM);
  const endExchange = raw.prepare<[RoomId]>('update room set exchange = null where id = ?');
  const endTurn = raw.prepare<[object]>(`
    update turn set state = 'aborted', finished_at = @now, waits_for = null, waits_until = null where id = @id`);
  const waitAgain = raw
    .prepare<[object], number>(`
      update message set state = 'waiting', turn_id = null
      where id in (select value from json_each(@batch)) and turn_id = @id and author_kind <> 'persona' and id > @upTo
      returning id`)
    .pluck();
  // Messages that wait again will be heard again, perhaps by others, so their hearings are removed.
  const unhear = raw.prepare<[object]>(`
    delete from heard where room_id = @room and heard_after > @upTo
      and message_id in (select value from json_each(@ids))`);
  const silence = raw.prepare<[object]>(`
    update message set quiet = 1 where room_id = @room and state = 'waiting' and id <= @upTo`);
  const forgetWaiting = raw.prepare<[object]>(`
    update message set state = 'done' where room_id = @room and state = 'waiting' and id <= @upTo`);
  // A reply to a forgotten message may have been added after the command was received.
  const forgetLateReplies = raw.prepare<[object]>(`
    delete from heard
    where room_id = @room and persona_id = @personaId and addressed = 1 and heard_after >= @upTo
      and message_id in (
        select message.id from message join turn on turn.id = message.turn_id
        where message.id = heard.message_id and author_kind = 'persona' and ${beganBefore('@upTo')})`);
  // What is already visible of a reply is completed instead of being left unfinished.
  const dropReplies = raw.prepare<[object]>(`
    update outbox set state = 'dropped', finished_at = @now, platform_message_id = ${UNKNOWN_IF_IN_DOUBT}
    where chat_id = @chatId and finished_at is null and platform_message_id is null and thread_id is @threadId
      and exists (
        select 1 from turn
        where turn.id = ${turnOf('outbox.origin')} and turn.persona_id = @personaId and ${beganBefore('@upTo')})`);

  /** Ends a turn; its messages count as answered, except those after `upTo`, which wait again. */
  function abort({ id, roomId: room, personaId, batch }: TurnRow, now: number, upTo: number): void {
    const again = waitAgain.all({ id, batch, upTo });
    if (again.length > 0) {
      unhear.run({ room, upTo, ids: JSON.stringify(again) });
      revise.run(room);
    }
    endTurn.run({ id, now });
    journal.interrupt(id, STOPPED, now);
    const { chatId, threadId } = roomParts(room);
    asked.endOf(chatId, id, now);
    const chat = chats.find(chatId);
    if (!chat) throw new Fault('internal', `room ${room} has no chat in the store`);
    const { channel, address, kind } = chat;
    shown.stop({ id, personaId }, { chatId, channel, address, threadId, kind, now });
    // A turn that runs beside a suspended one continues.
    if (running.get(room) === undefined) moveFenceOn.run(room);
  }

  return {
    stop({ room, turnId }: Effect<'stop'>, now: number): string | null {
      const current = running.get(room);
      const stopped = [current, ...suspended.all(room)].find((turn) => turn?.id === turnId);
      if (!stopped) return null;
      abort(stopped, now, Number.MAX_SAFE_INTEGER);
      if (stopped === current) endExchange.run(room);
      return turnId;
    },

    suppress({ room, upTo }: Effect<'suppress'>, now: number): string | null {
      const current = running.get(room);
      const [first = upTo + 1] = current ? (JSON.parse(current.batch) as number[]) : [];
      const begun = current && first <= upTo ? current : undefined;
      if (begun) {
        abort(begun, now, upTo);
        endExchange.run(room);
      } else if (!current) moveFenceOn.run(room);
      silence.run({ room, upTo });
      return begun?.id ?? null;
    },

    reset({ room, personaId, upTo }: Effect<'reset'>, now: number): string | null {
      const current = running.get(room);
      const aborted = current?.personaId === personaId ? current : undefined;
      if (aborted) abort(aborted, now, upTo);
      // Without a turn, a run may be about to begin one over messages that are forgotten here.
      else if (!current) moveFenceOn.run(room);
      for (const turn of suspended.all(room)) {
        // A suspended turn's messages count as heard: none of them waits again.
        if (turn.personaId === personaId) abort(turn, now, Number.MAX_SAFE_INTEGER);
      }
      course.stopIn(room, now);
      forgetWaiting.run({ room, upTo });
      endExchange.run(room);
      views.reset(room, personaId, upTo);
      forgetLateReplies.run({ room, personaId, upTo });
      const { chatId, threadId } = roomParts(room);
      dropReplies.run({ chatId, threadId, personaId, upTo, now });
      journal.forget(room, personaId, upTo);
      revise.run(room);
      return aborted?.id ?? null;
    },
  };
}

// Step 1 of the route: a room turned out to belong to another chat. Whoever heard it forgets it, as after `/reset`, and
// what answers in its old chat were given is forgotten too, for some of it may be from there.

export type SplitRoom = (room: RoomId, now: number) => void;

/** To be called within a transaction. */
export function splitRoomOf({ raw }: Connection, chats: Chats, endings: Endings): SplitRoom {
  const newestIn = raw.prepare<[RoomId], number>('select newest_message from room where id = ?').pluck();
  const nextHearer = raw
    .prepare<[RoomId, PersonaId], PersonaId>(
      'select persona_id from heard where room_id = ? and persona_id > ? order by persona_id limit 1',
    )
    .pluck();
  const forgetGiven = raw.prepare<[ChatId]>(
    'delete from given where room_id in (select id from room where chat_id = ?)',
  );

  // What was to be said in it is nothing for the chat that it belonged to.
  const cancelJobs = raw.prepare<[object]>(`
    update job set state = 'cancelled', next_at = null, prompt = '', ended_at = @now
    where chat_id = @chatId and room_id = @room`);

  return (room, now) => {
    const { chatId } = roomParts(room);
    const upTo = newestIn.get(room);
    const chat = chats.find(chatId);
    if (upTo === undefined || chat === undefined) return;
    const hearers = new Set([chat.activePersona]);
    for (let next = nextHearer.get(room, ''); next !== undefined; next = nextHearer.get(room, next)) {
      hearers.add(next);
    }
    for (const personaId of hearers) endings.reset({ kind: 'reset', room, personaId, upTo }, now);
    forgetGiven.run(chatId);
    cancelJobs.run({ chatId, room, now });
  };
}
