/**
 * Step 7 of the route: a persona's reaction to a message, through a tool. It goes into the outbox like everything that is
 * said. Posting one twice has no effect.
 */
import { roomParts } from '../../core/ids.js';
import { personaName } from '../../core/persona.js';
import type { Reaction } from '../../core/tool.js';
import { isOfPerson } from '../../core/transcript.js';
import type { Services } from '../services.js';

type ReactServices = Pick<Services, 'store' | 'channels' | 'personas' | 'clock' | 'settings'> & {
  deliver: { wake(chatId: string): void };
};

export async function postReaction(
  services: ReactServices,
  reaction: Reaction,
): Promise<'posted' | 'unknown message'> {
  const { store, personas, clock, deliver } = services;
  const { room, personaId, turnId, key, emoji } = reaction;
  const { chatId, threadId } = roomParts(room);
  const chat = await store.chat(chatId);
  const platformMessageId = await messageFor(services, reaction);
  if (chat === null || platformMessageId === null) return 'unknown message';
  const { channel, address, kind } = chat;
  await store.post({
    ...{ chatId, channel, address, kind, threadId, now: clock.now() },
    delivery: {
      origin: `tool:${turnId}:${key}`,
      personaId,
      speaker: personaName(await personas.list(chatId), personaId),
      part: 0,
      body: { text: '', marks: [], reaction: { platformMessageId, emoji } },
      replyTo: null,
    },
  });
  deliver.wake(chatId);
  return 'posted';
}

/** The message that the prompt names so; without a name, the newest of those that the turn answers. */
async function messageFor(
  { store, settings }: ReactServices,
  { room, personaId, turnId, messageId }: Reaction,
): Promise<string | null> {
  if (messageId === null) {
    return (await store.turnMessages(turnId)).findLast(isOfPerson)?.platformMessageId ?? null;
  }
  const { compactAfterMessages: limit, overheardMessages: overheard } = settings;
  const { messages } = await store.window({ room, personaId, limit, overheard, except: [] });
  const found = messages.find(({ id }) => id === messageId);
  return found !== undefined && isOfPerson(found) ? found.platformMessageId : null;
}
