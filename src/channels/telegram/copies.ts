/** In a basic group each of our bots gets its own copy of a message, under its own id. */
import { createHash } from 'node:crypto';
import type { Message } from 'grammy/types';
import { LRUCache } from 'lru-cache';
import type { InboundMessage } from '../../core/message.js';

/** Copies of a message arrive within seconds. */
const MOST_COPIED = 1_000;

/** Equal for all copies of a message, and for messages that differ only in their numbers. */
export function copyKeyOf(message: Message, words: string, sender: string): string {
  const { chat, date, reply_to_message: replied, quote } = message;
  const { photo = [], voice, video, video_note, animation, audio, document, live_photo } = message;
  // A file's id differs by bot; this one does not.
  const files = [...photo, voice, video, video_note, animation, audio, document, live_photo].flatMap(
    (file) => file?.file_unique_id ?? [],
  );
  const reply = replied && [replied.from?.id, replied.date, replied.text ?? replied.caption];
  const said = [words, files, quote?.text];
  return createHash('sha256')
    .update(JSON.stringify([chat.id, sender, date, said, reply ?? null]))
    .digest('base64url');
}

/** Numbers equal messages of the same second in order of arrival. A repeated one keeps its number. */
export function numberCopies(): (message: InboundMessage, key: string) => InboundMessage {
  const idsByKey = new LRUCache<string, string[]>({ max: MOST_COPIED });
  return (message, key) => {
    const { platformMessageId } = message;
    const ids = idsByKey.get(key) ?? [];
    if (!ids.includes(platformMessageId)) ids.push(platformMessageId);
    idsByKey.set(key, ids);
    return { ...message, dedupeKey: `${key}-${ids.indexOf(platformMessageId)}` };
  };
}
