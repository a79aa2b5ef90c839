/** The effects of commands on a room, its turns and a persona's view. To be called within a transaction. */
import { Fault } from '../../core/errors.js';
import { type PersonaId, type RoomId, roomParts } from '../../core/ids.js';
import type { Chats } from './chats.js';
import type { Connection } from './connection.js';
import { beganBefore, REVISE_ROOM, turnOf } from './rows.js';
import type { ShownRecords } from './shown.js';
import type { Views } from './views.js';

/** Each returns the turn that it aborted, if any. */
export interface Effects {
  stop(room: RoomId, turnId: string, now: number): string | null;
  silence(room: RoomId, upTo: number, now: number): string | null;
  reset(room: RoomId, personaId: PersonaId, upTo: number, now: number): string | null;
}

interface TurnRow {
  id: string;
  room: RoomId;
  personaId: PersonaId;
  batch: string;
}

export function effectsOf({ raw }: Connection, chats: Chats, shown: ShownRecords, views: Views): Effects {
  const turns = (where: string) =>
    raw.prepare<[RoomId], TurnRow>(
      `select id, room_id as room, persona_id as personaId, batch from turn where room_id = ? and ${where}`,
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
    update outbox set state = 'dropped', finished_at = @now
    where chat_id = @chatId and finished_at is null and platform_message_id is null and thread_id is @threadId
      and exists (
        select 1 from turn
        where turn.id = ${turnOf('outbox.origin')} and turn.persona_id = @personaId and ${beganBefore('@upTo')})`);

  /** Ends a turn; its messages count as answered, except those after `upTo`, which wait again. */
  function abort({ id, room, personaId, batch }: TurnRow, now: number, upTo: number): void {
    const again = waitAgain.all({ id, batch, upTo });
    if (again.length > 0) {
      unhear.run({ room, upTo, ids: JSON.stringify(again) });
      revise.run(room);
    }
    endTurn.run({ id, now });
    const { chatId, threadId } = roomParts(room);
    const chat = chats.find(chatId);
    if (!chat) throw new Fault('internal', `room ${room} has no chat in the store`);
    const { channel, address, kind } = chat;
    shown.stop({ id, personaId }, { chatId, channel, address, threadId, kind, now });
    // A turn that runs beside a suspended one continues.
    if (running.get(room) === undefined) moveFenceOn.run(room);
  }

  return {
    stop(room, turnId, now) {
      const current = running.get(room);
      const stopped = [current, ...suspended.all(room)].find((turn) => turn?.id === turnId);
      if (!stopped) return null;
      abort(stopped, now, Number.MAX_SAFE_INTEGER);
      if (stopped === current) endExchange.run(room);
      return turnId;
    },

    silence(room, upTo, now) {
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

    reset(room, personaId, upTo, now) {
      const current = running.get(room);
      const aborted = current?.personaId === personaId ? current : undefined;
      if (aborted) abort(aborted, now, upTo);
      // Without a turn, a run may be about to begin one over messages that are forgotten here.
      else if (!current) moveFenceOn.run(room);
      for (const turn of suspended.all(room)) {
        // A suspended turn's messages count as heard: none of them waits again.
        if (turn.personaId === personaId) abort(turn, now, Number.MAX_SAFE_INTEGER);
      }
      forgetWaiting.run({ room, upTo });
      endExchange.run(room);
      views.reset(room, personaId, upTo);
      forgetLateReplies.run({ room, personaId, upTo });
      const { chatId, threadId } = roomParts(room);
      dropReplies.run({ chatId, threadId, personaId, upTo, now });
      revise.run(room);
      return aborted?.id ?? null;
    },
  };
}
