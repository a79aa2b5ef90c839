/** Whoever sent a file that is not taken hears of it, whatever the model makes of it: leaves by step 7. */
import type { Channel } from '../core/channel.js';
import type { Clock } from '../core/clock.js';
import { type ChatId, roomParts } from '../core/ids.js';
import type { Claimed, OutboxStore } from '../core/store.js';
import type { FilesRead } from './files.js';

export interface NoticeParts {
  store: Pick<OutboxStore, 'post'>;
  channels: ReadonlyMap<string, Channel>;
  deliver: { wake(chatId: ChatId): void };
  clock: Clock;
}

export async function postNotices(
  { store, channels, deliver, clock }: NoticeParts,
  { claim, chat }: Claimed,
  notices: FilesRead['notices'],
): Promise<void> {
  for (const { message, text } of notices) {
    const [body] = channels.get(chat.channel)?.compose(text) ?? [];
    if (!body) continue;
    await store.post({
      ...{ chatId: chat.id, channel: chat.channel, address: chat.address, kind: chat.kind },
      threadId: roomParts(claim.room).threadId,
      now: clock.now(),
      delivery: {
        ...{ origin: `notice:${message.id}`, personaId: null, speaker: 'coterie', part: 0, body },
        replyTo: chat.kind === 'group' ? message.platformMessageId : null,
      },
    });
    deliver.wake(chat.id);
  }
}
