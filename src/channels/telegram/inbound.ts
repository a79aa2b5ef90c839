/**
 * Telegram's updates in our words, as they come from `intake.ts` and go to step 1 of the route: who speaks
 * (`author.ts`), what they say (`content.ts`), what they answer (`reply.ts`). Pure, and total: whatever an update holds,
 * it becomes events or nothing. Messages of bots, service messages and kinds we do not know are nothing.
 */
import type { InboundChoice, InboundEvent, InboundMessage } from '../../core/message.js';
import { boundedEvent } from '../kit/incoming.js';
import { nameOf, senderOf } from './author.js';
import type { OurBot, Receiver } from './bots.js';
import { saidIn } from './content.js';
import { copyKeyOf } from './copies.js';
import { idOf, isShared, messageIdOf, pressIdOf } from './message-id.js';
import { repliedFilesOf, replyOf } from './reply.js';
import { type Message, type Press, type Reaction, readUpdate, type Stopped } from './update.js';

/** Telegram reports a move in the old chat and in the new one; within one batch it becomes one event. */
export function inbound(
  updates: readonly unknown[],
  bot: OurBot,
  ours: readonly OurBot[] = [bot],
): InboundEvent[] {
  const moves = new Set<string>();
  return updates.flatMap((update) => {
    const event = eventOf(update, { bot, ours });
    if (event === null || (event.kind === 'moved' && moves.has(event.from))) return [];
    if (event.kind === 'moved') moves.add(event.from);
    return boundedEvent(event);
  });
}

function eventOf(update: unknown, receiver: Receiver): InboundEvent | null {
  const read = readUpdate(update);
  if (read?.message) return moveOf(read.message) ?? messageOf(read.message, receiver);
  if (read?.edited_message) return editOf(read.edited_message, receiver);
  if (read?.message_reaction) return reactionOf(read.message_reaction, receiver);
  if (read?.callback_query) return choiceOf(read.callback_query, receiver);
  const { stopped_message_generation: stopped, update_id: id } = read ?? {};
  return stopped && id !== undefined ? stopOf(stopped, id, receiver) : null;
}

function moveOf({ chat, migrate_to_chat_id: to, migrate_from_chat_id: from }: Message): InboundEvent | null {
  if (to !== undefined) return { kind: 'moved', from: String(chat.id), to: String(to) };
  return from === undefined ? null : { kind: 'moved', from: String(from), to: String(chat.id) };
}

function messageOf(message: Message, receiver: Receiver): InboundMessage | null {
  const { chat } = message;
  const direct = isPrivate(chat);
  const sender = senderOf(message, receiver);
  const answers = isReply(message);
  const said = saidIn(message, answers ? repliedFilesOf(message) : [], { ...receiver, direct });
  if (sender === null || said === null || chat.type === 'channel') return null;
  const hasCopies = !direct && receiver.ours.length > 1 && !isShared(chat.id);
  return {
    kind: 'message',
    chat: { ...addressOf(chat), title: direct ? sender.name : chat.title || String(chat.id) },
    threadId: threadOf(message),
    platformMessageId: idOf(message.message_id, chat, receiver.bot),
    sender,
    ...said,
    sentAt: (message.date ?? 0) * 1000,
    ...(hasCopies ? { twin: copyKeyOf(message, said.text, sender.address) } : {}),
    replyTo: answers ? replyOf(message, receiver) : null,
    ...(message.media_group_id ? { album: message.media_group_id } : {}),
  };
}

function editOf(message: Message, receiver: Receiver): InboundEvent | null {
  const { chat } = message;
  const sender = senderOf(message, receiver);
  const replied = isReply(message) ? repliedFilesOf(message) : [];
  const said = saidIn(message, replied, { ...receiver, direct: isPrivate(chat) });
  if (said === null || sender === null || chat.type === 'channel') return null;
  // Where somebody goes is told every few seconds, for hours: what was asked about it was asked of the beginning.
  if (message.location !== undefined) return null;
  const { addresses: _addresses, forwardedFrom: _from, ...words } = said;
  return {
    kind: 'edit',
    chat: addressOf(chat),
    sender: { address: sender.address },
    platformMessageId: idOf(message.message_id, chat, receiver.bot),
    ...words,
    editedAt: (message.edit_date ?? message.date ?? 0) * 1000,
  };
}

/** An update has all the emoji that somebody has put to a message: of these, the newest one. */
function reactionOf(reaction: Reaction, receiver: Receiver): InboundEvent | null {
  const { chat, message_id: number, user: from, actor_chat: as, date = 0 } = reaction;
  const sender = senderOf({ chat, from, sender_chat: as, author_signature: undefined }, receiver);
  const before = (reaction.old_reaction ?? []).map(emojiOf);
  const emoji = (reaction.new_reaction ?? []).map(emojiOf).findLast((each) => !before.includes(each));
  if (sender === null || emoji === undefined || chat.type === 'channel') return null;
  const { administrator: _, ...person } = sender;
  // Where all bots have the same number for a message, the update does not tell which of them sent it.
  const all = isShared(chat.id) ? receiver.ours.map((bot) => messageIdOf(bot, number)) : [];
  return {
    kind: 'reaction',
    chat: addressOf(chat),
    sender: person,
    platformMessageIds: [...new Set([idOf(number, chat, receiver.bot), ...all])],
    sign: emoji,
    sentAt: date * 1000,
  };
}

function choiceOf(press: Press, { bot }: Receiver): InboundChoice | null {
  const { from, message, data } = press;
  if (message === undefined || data === undefined || from.is_bot) return null;
  return {
    kind: 'choice',
    chat: addressOf(message.chat),
    threadId: threadOf(message),
    sender: { address: String(from.id), name: nameOf(from), administrator: false },
    platformMessageId: pressIdOf(bot, press),
    value: data,
    sentAt: 0,
  };
}

/** A custom emoji comes as a number without meaning, a paid one is a star. */
function emojiOf({ type, emoji }: { type: string; emoji?: string | undefined }): string {
  return emoji || (type === 'paid' ? '⭐' : 'an emoji');
}

/** The button below a draft means what the command /stop means. Only private chats have drafts. */
function stopOf(
  { chat, message_thread_id: thread }: Stopped,
  updateId: number,
  { bot }: Receiver,
): InboundMessage | null {
  if (!isPrivate(chat)) return null;
  const address = String(chat.id);
  const name = nameOf(chat);
  return {
    kind: 'message',
    chat: { address, kind: 'direct', title: name },
    threadId: thread === undefined ? null : String(thread),
    platformMessageId: messageIdOf(bot, `stop-${updateId}`),
    sender: { address, name, administrator: false },
    text: '/stop',
    sentAt: 0,
    mentionsBot: false,
    replyTo: null,
  };
}

/** Most messages answer none: for these, nothing is looked for (`reply.ts`). */
function isReply({ reply_to_message: here, external_reply: elsewhere }: Message): boolean {
  return here !== undefined || elsewhere !== undefined;
}

/** A reply outside of topics has a thread id, too, but is in no thread; the general topic has none. */
function threadOf(message: Pick<Message, 'is_topic_message' | 'message_thread_id'>): string | null {
  const { is_topic_message, message_thread_id } = message;
  return is_topic_message && message_thread_id !== undefined ? String(message_thread_id) : null;
}

function addressOf(chat: Message['chat']): { address: string; kind: 'direct' | 'group' } {
  return { address: String(chat.id), kind: isPrivate(chat) ? 'direct' : 'group' };
}

/** A person's id is positive, a group's is not. */
function isPrivate(chat: Pick<Message['chat'], 'id' | 'type'>): boolean {
  return chat.type === undefined ? chat.id > 0 : chat.type === 'private';
}
