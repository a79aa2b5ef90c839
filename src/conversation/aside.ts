/**
 * What a persona says beside its answer, through a tool: it goes into the outbox at once, and leaves by step 7 like
 * everything else. Said in a turn that is taken up again, it is there already.
 */
import type { Channel } from '../core/channel.js';
import type { Clock } from '../core/clock.js';
import { type ChatId, type RoomId, roomParts } from '../core/ids.js';
import { type Personas, personaName } from '../core/persona.js';
import type { ChatStore, OutboxStore } from '../core/store.js';
import type { Aside } from '../core/tool.js';
import { faceOf } from './presence.js';
import { deliveriesOf } from './reply.js';

export interface AsideParts {
  store: ChatStore & Pick<OutboxStore, 'post'>;
  personas: Personas;
  channels: ReadonlyMap<string, Channel>;
  /** Where a turn in flight is. */
  roomOf(turnId: string): RoomId | null;
  onPosted(chatId: ChatId): void;
  clock: Clock;
}

export async function sayAside(parts: AsideParts, aside: Aside): Promise<'posted' | 'unknown chat'> {
  const { chatId, personaId, turnId, key, text, file } = aside;
  const chat = await parts.store.chat(chatId);
  const channel = chat && parts.channels.get(chat.channel);
  if (!channel) return 'unknown chat';
  const room = parts.roomOf(turnId);
  const here = room === null ? null : roomParts(room);
  const personas = await parts.personas.list(chatId);
  const face = faceOf(chat, personas, personaId);
  const from = {
    ...{
      origin: `tool:${turnId}:${key}`,
      personaId,
      speaker: personaName(personas, personaId),
      replyTo: null,
    },
    ...(face === undefined ? {} : { face }),
  };
  for (const delivery of deliveriesOf(channel, text, from, file === null ? [] : [file])) {
    await parts.store.post({
      ...{ chatId, channel: chat.channel, address: chat.address, kind: chat.kind, delivery },
      threadId: here?.chatId === chatId ? here.threadId : null,
      now: parts.clock.now(),
    });
  }
  parts.onPosted(chatId);
  return 'posted';
}
