/** The control lane: commands, and what they do to a room, a persona's view and a turn in flight. */
import { and, eq, gt, lte, sql } from 'drizzle-orm';
import { Fault } from '../../core/errors.js';
import { type ChatId, type PersonaId, type RoomId, roomParts } from '../../core/ids.js';
import type { CommandEffect, CommandStore } from '../../core/store.js';
import type { Chats } from './chats.js';
import type { Connection } from './connection.js';
import type { Deliver } from './deliveries.js';
import { beganBefore, toChat, turnOf } from './rows.js';
import { chat, command, heard, message, outbox, room, turn, version } from './schema.js';
import type { Views } from './views.js';

interface Attendance {
  invited: PersonaId[];
  away: PersonaId[];
}

type TurnRow = typeof turn.$inferSelect;

const turnOfOrigin = turnOf(outbox.origin);

export function commandStore(
  connection: Connection,
  chats: Chats,
  deliver: Deliver,
  views: Views,
): CommandStore {
  const { query, write } = connection;

  function runningTurn(roomId: RoomId): TurnRow | undefined {
    return query
      .select()
      .from(turn)
      .where(and(eq(turn.roomId, roomId), sql`${turn.state} = 'running'`))
      .get();
  }

  /** Whoever works in the room finds its claim lost. */
  function moveFenceOn(roomId: RoomId): void {
    query
      .update(room)
      .set({ fence: sql`${room.fence} + 1`, leaseOwner: null })
      .where(eq(room.id, roomId))
      .run();
  }

  /** Ends a turn; its messages count as answered, save those after `upTo`, which wait again. */
  function abort(running: TurnRow, now: number, upTo = Number.MAX_SAFE_INTEGER): void {
    const batch = JSON.stringify(running.batch);
    const isItsBatch = sql`${message.id} in (select value from json_each(${batch})) and ${message.state} = 'taken'`;
    const again = query
      .update(message)
      .set({ state: 'waiting', turnId: null })
      .where(and(isItsBatch, gt(message.id, upTo)))
      .returning({ id: message.id })
      .all();
    if (again.length > 0) unhear(running.roomId, upTo, again);
    query.update(message).set({ state: 'done' }).where(isItsBatch).run();
    query.update(turn).set({ state: 'aborted', finishedAt: now }).where(eq(turn.id, running.id)).run();
    deliver.open.stop(running.id, now);
    moveFenceOn(running.roomId);
  }

  /** Nobody else speaks. */
  function endExchange(roomId: RoomId): void {
    query.update(room).set({ exchange: null }).where(eq(room.id, roomId)).run();
  }

  /** What waits again will be heard again, and perhaps by others: nobody has heard it yet. */
  function unhear(roomId: RoomId, upTo: number, messages: { id: number }[]): void {
    const ids = JSON.stringify(messages.map(({ id }) => id));
    query
      .delete(heard)
      .where(
        and(
          eq(heard.roomId, roomId),
          gt(heard.heardAfter, upTo),
          sql`${heard.messageId} in (select value from json_each(${ids}))`,
        ),
      )
      .run();
  }

  function stop(roomId: RoomId, turnId: string, now: number): string | null {
    const running = runningTurn(roomId);
    if (running?.id !== turnId) return null;
    abort(running, now);
    endExchange(roomId);
    return running.id;
  }

  function hush(roomId: RoomId, upTo: number, now: number): string | null {
    const running = runningTurn(roomId);
    const begun = running !== undefined && (running.batch[0] ?? upTo + 1) <= upTo ? running : undefined;
    if (begun) {
      abort(begun, now, upTo);
      endExchange(roomId);
    } else if (!running) moveFenceOn(roomId);
    query
      .update(message)
      .set({ quiet: true })
      .where(and(eq(message.roomId, roomId), sql`${message.state} = 'waiting'`, lte(message.id, upTo)))
      .run();
    return begun?.id ?? null;
  }

  function reset(roomId: RoomId, personaId: PersonaId, upTo: number, now: number): string | null {
    const running = runningTurn(roomId);
    const aborted = running?.personaId === personaId ? running : undefined;
    if (aborted) abort(aborted, now, upTo);
    // Without a turn, somebody may be about to begin one over what is forgotten here.
    else if (!running) moveFenceOn(roomId);
    query
      .update(message)
      .set({ state: 'done' })
      .where(and(eq(message.roomId, roomId), sql`${message.state} = 'waiting'`, lte(message.id, upTo)))
      .run();
    endExchange(roomId);
    views.reset(roomId, personaId, upTo);
    forgetLateReplies(roomId, personaId, upTo);
    dropReplies(roomId, personaId, upTo, now);
    return aborted?.id ?? null;
  }

  /** A reply to what is forgotten may have become transcript after the command came in. */
  function forgetLateReplies(roomId: RoomId, personaId: PersonaId, upTo: number): void {
    query.run(sql`
      delete from ${heard}
      where ${heard.roomId} = ${roomId} and ${heard.personaId} = ${personaId} and ${heard.addressed} = 1
        and ${heard.heardAfter} >= ${upTo}
        and ${heard.messageId} in (
          select ${message.id} from ${message} join ${turn} on ${turn.id} = ${message.turnId}
          where ${message.id} = ${heard.messageId} and ${message.authorKind} = 'persona'
            and ${beganBefore(upTo)})`);
  }

  function dropReplies(roomId: RoomId, personaId: PersonaId, upTo: number, now: number): void {
    const { chatId, threadId } = roomParts(roomId);
    query
      .update(outbox)
      .set({ state: 'dropped', finishedAt: now })
      .where(
        and(
          eq(outbox.chatId, chatId),
          // What can be seen of a reply already is completed, not left as it is.
          sql`${outbox.finishedAt} is null and ${outbox.platformMessageId} is null`,
          sql`${outbox.threadId} is ${threadId}`,
          sql`exists (
            select 1 from ${turn} where ${turn.id} = ${turnOfOrigin} and ${turn.personaId} = ${personaId} and ${beganBefore(upTo)})`,
        ),
      )
      .run();
  }

  function attend(chatId: ChatId, change: (chat: Attendance) => Attendance): void {
    const row = chats.find(chatId);
    if (!row) return;
    const { invited, away } = change({ invited: row.invited ?? [], away: row.away ?? [] });
    const some = (ids: PersonaId[]) => (ids.length === 0 ? null : ids);
    query
      .update(chat)
      .set({ invited: some(invited), away: some(away) })
      .where(eq(chat.id, chatId))
      .run();
  }

  function apply(effect: CommandEffect, now: number): string | null {
    switch (effect.kind) {
      case 'reset':
        return reset(effect.room, effect.personaId, effect.upTo, now);
      case 'hush':
        return hush(effect.room, effect.upTo, now);
      case 'stop':
        return stop(effect.room, effect.turnId, now);
      case 'activate':
        attend(effect.chatId, (chat) => ({ ...chat, away: without(chat.away, effect.personaId) }));
        query.update(chat).set({ activePersona: effect.personaId }).where(eq(chat.id, effect.chatId)).run();
        return null;
      case 'invite':
        attend(effect.chatId, ({ invited, away }) => ({
          invited: [...without(invited, effect.personaId), effect.personaId],
          away: without(away, effect.personaId),
        }));
        return null;
      case 'leave':
        attend(effect.chatId, ({ invited, away }) => ({
          invited: without(invited, effect.personaId),
          away: [...without(away, effect.personaId), effect.personaId],
        }));
        return null;
      case 'undone':
        query.update(version).set({ undone: true }).where(eq(version.id, effect.versionId)).run();
        return null;
    }
  }

  return {
    takeCommand: (id) =>
      write(() => {
        const row = query.select().from(command).where(eq(command.id, id)).get();
        if (!row || row.state === 'done') return null;
        const chatRow = chats.find(row.chatId);
        if (!chatRow) throw new Fault('internal', `command ${id} has no chat in the store`);
        query
          .update(command)
          .set({ state: 'running', tries: row.tries + 1 })
          .where(eq(command.id, id))
          .run();
        return {
          id,
          name: row.name,
          argument: row.argument,
          room: row.roomId,
          chat: toChat(chatRow),
          sender: { id: row.senderId, name: row.senderName, administrator: row.administrator },
          platformMessageId: row.platformMessageId,
          afterMessage: row.afterMessage,
          tries: row.tries + 1,
          ...(row.persona === null ? {} : { persona: row.persona }),
        };
      }),

    finishCommand: ({ id, now, deliveries, effects }) =>
      write(() => {
        const row = query.select().from(command).where(eq(command.id, id)).get();
        const chatRow = row && row.state !== 'done' ? chats.find(row.chatId) : undefined;
        if (!row || !chatRow) return { abortedTurn: null };
        // What was asked is nobody's business any more: `/memory forget TEXT` shall not keep the text.
        const done = { state: 'done' as const, finishedAt: now, argument: '' };
        query.update(command).set(done).where(eq(command.id, id)).run();
        let abortedTurn: string | null = null;
        for (const effect of effects) abortedTurn = apply(effect, now) ?? abortedTurn;
        const { id: chatId, channel, address, kind } = chatRow;
        const { threadId } = roomParts(row.roomId);
        deliver({ chatId, channel, address, threadId, kind, now }, deliveries);
        return { abortedTurn };
      }),
  };
}

function without(ids: PersonaId[], id: PersonaId): PersonaId[] {
  return ids.filter((other) => other !== id);
}
