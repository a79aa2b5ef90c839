/** The command lane: claims commands, and applies their effects in one transaction with the answer. */
import { eq } from 'drizzle-orm';
import { Fault } from '../../core/errors.js';
import { type PersonaId, roomParts } from '../../core/ids.js';
import type { StoredCommand } from '../../core/receipt.js';
import type { CommandEffect, RouteStore } from '../../core/route-store.js';
import { type Chats, toChat } from './chats.js';
import type { Connection } from './connection.js';
import type { Deliver } from './deliveries.js';
import type { Effects } from './effects.js';
import type { Greet } from './greetings.js';
import type { Questions } from './questions.js';
import { version } from './schema.js';
import { command } from './schema-work.js';

type CommandVerbs = Pick<RouteStore, 'takeCommand' | 'finishCommand'>;

export function commandStore(
  connection: Connection,
  chats: Chats,
  deliver: Deliver,
  questions: Questions,
  effects: Effects,
  greet: Greet,
): CommandVerbs {
  const { raw, query, write } = connection;
  const take = raw.prepare<[object], { tries: number }>(`
    update command set state = 'running', tries = tries + 1, lease_owner = @owner, lease_until = @until
    where id = @id and finished_at is null
      and (state = 'waiting' or lease_owner is null or lease_owner = @owner or lease_until <= @now)
    returning tries`);

  function attend(
    { chatId, personaId }: Extract<CommandEffect, { kind: 'activate' | 'invite' | 'leave' }>,
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
        return effects.reset(effect.room, effect.personaId, effect.upTo, now);
      case 'suppress':
        return effects.silence(effect.room, effect.upTo, now);
      case 'stop':
        return effects.stop(effect.room, effect.turnId, now);
      case 'activate':
        attend(effect, 'activePersona');
        return null;
      case 'invite':
        attend(effect, 'invited');
        return null;
      case 'leave':
        attend(effect, 'away');
        return null;
      case 'undone':
        query.update(version).set({ undone: true }).where(eq(version.id, effect.versionId)).run();
        return null;
      case 'ask':
        questions.ask(effect);
        return null;
      case 'greet':
        greet(effect, now);
        return null;
    }
  }

  return {
    takeCommand: (id, { owner, now, leaseMs }) =>
      write(() => {
        const taken = take.get({ id, owner, now, until: now + leaseMs });
        const row = taken && query.select().from(command).where(eq(command.id, id)).get();
        if (!row) return null;
        const chat = chats.find(row.chatId);
        if (!chat) throw new Fault('internal', `command ${id} has no chat in the store`);
        const stored: StoredCommand = {
          id,
          name: row.name,
          argument: row.argument,
          room: row.roomId,
          chat: toChat(chat),
          sender: { id: row.senderId, name: row.senderName, administrator: row.administrator },
          platformMessageId: row.platformMessageId,
          afterMessage: row.afterMessage,
          tries: row.tries,
          crashes: row.crashes,
        };
        if (row.persona !== null) stored.persona = row.persona;
        return stored;
      }),

    finishCommand: ({ id, now, deliveries, effects: asked }) =>
      write(() => {
        const row = query.select().from(command).where(eq(command.id, id)).get();
        const chat = row && row.state !== 'done' ? chats.find(row.chatId) : undefined;
        if (!row || !chat) return { abortedTurn: null };
        // The argument is deleted: `/memory forget TEXT` must not keep the text.
        const done = { state: 'done' as const, finishedAt: now, argument: '', leaseOwner: null };
        query.update(command).set(done).where(eq(command.id, id)).run();
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
