/**
 * In a basic group every bot calls a message by a number of its own. What all copies have in common says which are
 * of one message. Pure, but for `createOrdinals`, which tells equal messages of one second apart.
 */
import { createHash } from 'node:crypto';
import type { InboundEvent } from '../../core/message.js';
import { filesMarked } from './media.js';
import type { Message } from './update.js';

/** How many are remembered: copies come within seconds. */
const MOST = 1_000;

/** The same for two messages that nothing tells apart but their numbers. */
export function likenessOf(message: Message, sender: string): string {
  const { chat, date, reply_to_message: replied } = message;
  const reply = replied && [replied.from?.id, replied.date, replied.text ?? replied.caption];
  const said = [message.text ?? message.caption, filesMarked(message), message.quote?.text];
  return createHash('sha256')
    .update(JSON.stringify([chat.id, sender, date, said, reply ?? null]))
    .digest('base64url');
}

/** Numbers equal messages of one bot's in the order in which it got them; one that it gets again keeps its number. */
export function createOrdinals(): (event: InboundEvent) => InboundEvent {
  const seen = new Map<string, string[]>();
  return (event) => {
    if (event.kind !== 'message' || event.twin === undefined) return event;
    const { twin, platformMessageId } = event;
    const ids = seen.get(twin) ?? [];
    if (!ids.includes(platformMessageId)) ids.push(platformMessageId);
    seen.delete(twin);
    seen.set(twin, ids);
    for (const oldest of seen.keys()) {
      if (seen.size <= MOST) break;
      seen.delete(oldest);
    }
    return { ...event, twin: `${twin}-${ids.indexOf(platformMessageId)}` };
  };
}
