/**
 * In a basic group every bot has a number of its own for a message, so several copies of it reach us under ids that
 * differ. What the copies have in common tells which are of one message. Pure, but for `numberCopies`.
 */
import { createHash } from 'node:crypto';
import type { InboundEvent } from '../../core/message.js';
import { bounded } from '../kit/bounded.js';
import { fileMarksIn } from './media.js';
import type { Message } from './update.js';

/** How many keys are remembered: copies come within seconds. */
const MOST = 1_000;

/** The same for all copies of a message, and for two messages that nothing but their numbers tells apart. */
export function copyKeyOf(message: Message, sender: string): string {
  const { chat, date, reply_to_message: replied } = message;
  const reply = replied && [replied.from?.id, replied.date, replied.text ?? replied.caption];
  const said = [message.text ?? message.caption, fileMarksIn(message), message.quote?.text];
  return createHash('sha256')
    .update(JSON.stringify([chat.id, sender, date, said, reply ?? null]))
    .digest('base64url');
}

/**
 * Tells equal messages of one second apart: those of one bot are numbered in the order in which it got them. One that
 * it gets again keeps its number.
 */
export function numberCopies(): (event: InboundEvent) => InboundEvent {
  const idsByKey = bounded<string, string[]>(MOST);
  return (event) => {
    if (event.kind !== 'message' || event.twin === undefined) return event;
    const { twin, platformMessageId } = event;
    const ids = idsByKey.get(twin) ?? [];
    if (!ids.includes(platformMessageId)) ids.push(platformMessageId);
    idsByKey.set(twin, ids);
    return { ...event, twin: `${twin}-${ids.indexOf(platformMessageId)}` };
  };
}
