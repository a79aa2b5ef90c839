/** Who speaks, and whose words somebody passes on, for `inbound.ts`. Pure. */
import type { InboundMessage } from '../../core/message.js';
import type { Receiver } from './bots.js';
import type { Author, Message, Origin } from './update.js';

/**
 * Who speaks; null for bots. For who posts as a chat (an anonymous administrator as the group itself, a channel in its
 * discussion group) Telegram names a bot of its own as the sender, and the chat beside it.
 */
export function senderOf(
  message: Author & Pick<Message, 'chat'>,
  { ours }: Pick<Receiver, 'ours'>,
): InboundMessage['sender'] | null {
  const { from, sender_chat: as, chat } = message;
  if (as !== undefined) {
    const administrator = as.id === chat.id;
    const signature = administrator ? message.author_signature : undefined;
    return { address: String(as.id), name: signature || nameOf(as), administrator };
  }
  if (from === undefined || from.is_bot || ours.some(({ id }) => id === from.id)) return null;
  return { address: String(from.id), name: nameOf(from), administrator: false };
}

/** Of a person or of a chat. */
export function nameOf(one: {
  id: number;
  title?: string | undefined;
  first_name?: string | undefined;
  last_name?: string | undefined;
  username?: string | undefined;
}): string {
  const name = [one.first_name, one.last_name].filter(Boolean).join(' ').trim();
  return one.title || name || one.username || String(one.id);
}

/** Empty where Telegram does not say. Who hides their account behind a forward is a name alone. */
export function originName({ sender_user, sender_user_name, sender_chat, chat }: Origin): string {
  const known = sender_user ?? sender_chat ?? chat;
  return known === undefined ? (sender_user_name ?? '') : nameOf(known);
}

/**
 * Whose words a message holds that its sender did not write: those of a forward, or of the bot by way of which it was made
 * (`@gif cats`). Empty where Telegram does not say; undefined: they are the sender's own.
 */
export function foreignWriterOf({
  forward_origin: origin,
  via_bot: bot,
  is_automatic_forward: isPost,
}: Pick<Message, 'forward_origin' | 'via_bot'> & { is_automatic_forward?: boolean | undefined }):
  | string
  | undefined {
  if (origin !== undefined) return originName(origin);
  if (bot !== undefined) return nameOf(bot);
  return isPost ? '' : undefined;
}
