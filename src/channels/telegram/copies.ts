/**
 * In a basic group several copies of a message reach us, one for each of our bots and under ids that differ
 * (`message-id.ts`). What they have in common tells which are copies of one.
 */
import { createHash } from 'node:crypto';
import type { InboundMessage } from '../../core/message.js';
import { bounded } from '../kit/bounded.js';
import type { Message } from './update.js';

/** Of how many messages copies are recognised: they come within seconds. */
const MOST_COPIED = 1_000;

/**
 * The same for all copies of a message, and for two messages that nothing but their numbers tells apart. `words`: what
 * it shows, whatever it is. Pure.
 */
export function copyKeyOf(message: Message, words: string, sender: string): string {
  const { chat, date, reply_to_message: replied, quote } = message;
  const { photo = [], voice, video, video_note, animation, audio, document, live_photo } = message;
  // The id of a file is another one for each bot, but not this one.
  const files = [...photo, voice, video, video_note, animation, audio, document, live_photo]
    .map((file) => file?.file_unique_id)
    .filter((id) => id !== undefined);
  const reply = replied && [replied.from?.id, replied.date, replied.text ?? replied.caption];
  const said = [words, files, quote?.text];
  return createHash('sha256')
    .update(JSON.stringify([chat.id, sender, date, said, reply ?? null]))
    .digest('base64url');
}

/**
 * Tells equal messages of one second apart: those of one bot are numbered in the order in which it got them. One that
 * it gets again keeps its number.
 */
export function numberCopies(): (message: InboundMessage, twin: string) => InboundMessage {
  const idsByKey = bounded<string, string[]>(MOST_COPIED);
  return (message, twin) => {
    const { platformMessageId } = message;
    const ids = idsByKey.get(twin) ?? [];
    if (!ids.includes(platformMessageId)) ids.push(platformMessageId);
    idsByKey.set(twin, ids);
    return { ...message, twin: `${twin}-${ids.indexOf(platformMessageId)}` };
  };
}
