/** Our reaction to a message of a person: to WhatsApp a message of its own, which people see as a sign on the other. */
import { proto } from '@whiskeysockets/baileys';
import type { Recipient } from '../../core/channel.js';
import type { Cache } from './cache.js';

/** null where the message is not known any more. */
export function reactionTo(
  cache: Cache,
  { address, kind }: Recipient,
  id: string,
  emoji: string,
  now: number,
): proto.IMessage | null {
  const known = cache.quotable(address, id)?.key;
  // In a group the key holds the author, too, so there only a message that came since the start can be named.
  const key = known ?? (kind === 'direct' ? { remoteJid: address, fromMe: false, id } : null);
  if (key === null) return null;
  return {
    reactionMessage: proto.Message.ReactionMessage.create({ key, text: emoji, senderTimestampMs: now }),
  };
}
