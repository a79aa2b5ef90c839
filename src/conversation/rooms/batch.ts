/** Beside steps 3 to 6 of the route: what the messages that a turn answers say about it. */
import type { ChatId } from '../../core/ids.js';
import { jobOfEvent } from '../../core/jobs.js';
import { eventIdOf } from '../../core/journal.js';
import type { RoomState } from '../../core/route-store.js';
import type { Authorisation } from '../../core/tool.js';
import type { StoredMessage } from '../../core/transcript.js';
import { askerOfTurn } from '../asker.js';
import type { Payer } from '../services.js';
import type { RoomServices, Turn } from './room-services.js';

const HOUR_MS = 3_600_000;

/** The sender of the last message by a person; empty when the batch has only events from the gateway. */
export function senderOf(batch: StoredMessage[]): ChatId {
  const last = batch.findLast(({ author }) => author.kind === 'person')?.author;
  return last?.kind === 'person' ? last.id : '';
}

/** The event in the journal that led to a turn: of the newest message that no persona wrote. */
export function causeOf(batch: StoredMessage[]): string | null {
  const newest = batch.findLast(({ author }) => author.kind !== 'persona');
  return newest === undefined ? null : eventIdOf(newest.id);
}

/**
 * For whom the model is asked: what personas say to each other is laid to the person whose words they answer, and what a
 * schedule has them do to whoever set it.
 */
export function payerOf({ room, turn, batch, exchange, scheduledBy }: Turn): Payer {
  const personId = senderOf(batch) || (exchange?.personId ?? scheduledBy);
  return { room, personaId: turn.personaId, personId };
}

/** Who set the newest schedule among these messages; also one that words from outside may have led to: it costs the same. */
export async function schedulerOf(
  { store }: RoomServices,
  batch: readonly StoredMessage[],
): Promise<ChatId | null> {
  for (const { author, platformMessageId } of batch.toReversed()) {
    const id = author.kind === 'gateway' ? jobOfEvent(platformMessageId) : null;
    const job = id === null ? null : await store.job(id);
    if (job !== null && job.senderId !== '') return job.senderId;
  }
  return null;
}

/** For whom it is asked who answers these messages. */
export function payerIn({ room, chat }: RoomState, messages: StoredMessage[]): Payer {
  return { room, personaId: chat.activePersona, personId: senderOf(messages) || null, undecided: true };
}

/** null when the oldest of them has not waited longer than that. */
export function hoursLate(batch: StoredMessage[], startedAt: number, maxAgeMs: number): number | null {
  const waited = startedAt - Math.min(...batch.map((message) => message.receivedAt));
  return waited > maxAgeMs ? Math.floor(waited / HOUR_MS) : null;
}

/** What the tool calls of a turn are allowed. */
export function authorisationOf(
  services: RoomServices,
  { chat, turn, batch, exchange }: Turn,
): Authorisation {
  return {
    chatId: chat.id,
    personaId: turn.personaId,
    senderId: senderOf(batch),
    channel: chat.channel,
    controlChats: services.rulesFor(chat.channel).controlChats,
    asker: askerOfTurn(services, chat, { batch, exchange }),
  };
}
