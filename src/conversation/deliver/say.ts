/**
 * Step 7 of the route: messages outside the turn's answer: from a persona through a tool, or the gateway's notice about
 * a file it did not take. They go into the outbox at once and are sent like everything else. Posting one twice has no
 * effect.
 */

import type { ChatRecord } from '../../core/chat-record.js';
import { type ChatId, roomParts } from '../../core/ids.js';
import { personaName } from '../../core/persona.js';
import type { SideMessage } from '../../core/tool.js';
import type { StoredMessage } from '../../core/transcript.js';
import { appearanceOf } from '../participants.js';
import type { Services } from '../services.js';
import { deliveriesOf } from './reply.js';

type SayServices = Pick<Services, 'store' | 'channels' | 'clock'> & {
  deliver: { wake(chatId: ChatId): void };
};

export async function postSideMessage(
  services: SayServices & Pick<Services, 'personas'>,
  { chatId, personaId, turnId, room, key, text, file }: SideMessage,
): Promise<'posted' | 'unknown chat'> {
  const { store, channels, clock } = services;
  const chat = await store.chat(chatId);
  const channel = chat && channels.get(chat.channel);
  if (!channel) return 'unknown chat';
  const here = roomParts(room);
  const personas = await services.personas.list(chatId);
  const appearance = appearanceOf(channel, chat, personas, personaId);
  const from = {
    origin: `tool:${turnId}:${key}`,
    personaId,
    speaker: personaName(personas, personaId),
    replyTo: null,
    ...(appearance === undefined ? {} : { appearance }),
  };
  const { channel: channelName, address, kind } = chat;
  for (const delivery of deliveriesOf(channel, text, from, file === null ? [] : [file])) {
    await store.post({
      chatId,
      channel: channelName,
      address,
      kind,
      delivery,
      threadId: here.chatId === chatId ? here.threadId : null,
      now: clock.now(),
    });
  }
  services.deliver.wake(chatId);
  return 'posted';
}

/** Tells the sender about files that were not taken, independently of the model. */
export async function postNotices(
  services: SayServices,
  { chat, room }: { chat: ChatRecord; room: string },
  notices: { message: StoredMessage; text: string }[],
): Promise<void> {
  const { threadId } = roomParts(room);
  for (const { message, text } of notices) {
    const origin = `notice:${message.id}`;
    const { platformMessageId: replyTo } = message;
    const now = services.clock.now();
    await postOnce(services, { chat, threadId }, { origin, text, replyTo, now });
    services.deliver.wake(chat.id);
  }
}

/** Words of the gateway itself into the outbox; `replyTo`: the message that they are about, which a group is shown. */
export async function postOnce(
  { store, channels }: Pick<Services, 'store' | 'channels'>,
  {
    chat,
    threadId,
  }: { chat: Pick<ChatRecord, 'id' | 'channel' | 'address' | 'kind'>; threadId: string | null },
  { origin, text, replyTo, now }: { origin: string; text: string; replyTo: string | null; now: number },
): Promise<void> {
  const { id: chatId, channel, address, kind } = chat;
  const [body] = channels.get(channel)?.compose(text) ?? [];
  if (!body) return;
  const said = { personaId: null, speaker: 'coterie', part: 0, body };
  const delivery = { origin, ...said, replyTo: kind === 'group' ? replyTo : null };
  await store.post({ chatId, channel, address, kind, threadId, now, delivery });
}
