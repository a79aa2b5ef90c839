/**
 * Telegram's updates in our words. Pure, and total: whatever an update holds, it becomes events or nothing.
 * Messages of bots, service messages and kinds we do not know are nothing.
 */
import type { InboundEvent, InboundMessage, ReplyTo } from '../../core/message.js';
import { copyKeyOf } from './copies.js';
import { attachmentsIn, mediaLabel } from './media.js';
import { mentionsIn, type OurBot } from './mentions.js';
import { isShared, messageIdOf } from './message-id.js';
import {
  type Author,
  type Content,
  type Message,
  type Reaction,
  readUpdate,
  type Stopped,
  type User,
} from './update.js';

interface Receiver {
  /** The bot that got the update. */
  bot: OurBot;
  ours: readonly OurBot[];
}

/** Telegram reports a move in the old chat and in the new one; within one batch it becomes one event. */
export function inbound(
  updates: readonly unknown[],
  bot: OurBot,
  ours: readonly OurBot[] = [bot],
): InboundEvent[] {
  const events: InboundEvent[] = [];
  const moves = new Set<string>();
  for (const update of updates) {
    const event = eventOf(update, { bot, ours });
    if (event === null) continue;
    if (event.kind === 'moved') {
      if (moves.has(event.from)) continue;
      moves.add(event.from);
    }
    events.push(event);
  }
  return events;
}

function eventOf(update: unknown, receiver: Receiver): InboundEvent | null {
  const read = readUpdate(update);
  if (read?.message) return moveOf(read.message) ?? messageOf(read.message, receiver);
  if (read?.edited_message) return editOf(read.edited_message, receiver);
  if (read?.message_reaction) return reactionOf(read.message_reaction, receiver);
  const { stopped_message_generation: stopped, update_id: id } = read ?? {};
  return stopped && id !== undefined ? stopOf(stopped, id, receiver) : null;
}

function moveOf({ chat, ...message }: Message): InboundEvent | null {
  if (message.migrate_to_chat_id !== undefined) {
    return { kind: 'moved', from: String(chat.id), to: String(message.migrate_to_chat_id) };
  }
  if (message.migrate_from_chat_id !== undefined) {
    return { kind: 'moved', from: String(message.migrate_from_chat_id), to: String(chat.id) };
  }
  return null;
}

function messageOf(message: Message, receiver: Receiver): InboundMessage | null {
  const { chat } = message;
  const sender = senderOf(message, receiver);
  const said = saidIn(message, receiver);
  if (sender === null || said === null || chat.type === 'channel') return null;
  const direct = isPrivate(chat);
  const hasCopies = !direct && receiver.ours.length > 1 && !sameToAll(chat);
  return {
    kind: 'message',
    chat: {
      address: String(chat.id),
      kind: direct ? 'direct' : 'group',
      title: direct ? sender.name : chat.title || String(chat.id),
    },
    threadId: threadOf(message),
    platformMessageId: idOf(message.message_id, chat, receiver.bot),
    sender,
    ...said,
    sentAt: (message.date ?? 0) * 1000,
    ...(hasCopies ? { twin: copyKeyOf(message, sender.address) } : {}),
    replyTo: replyOf(message, receiver),
  };
}

function editOf(message: Message, receiver: Receiver): InboundEvent | null {
  const { chat } = message;
  const sender = senderOf(message, receiver);
  const read = saidIn(message, receiver);
  if (read === null || sender === null || chat.type === 'channel') return null;
  const { addresses: _addresses, ...said } = read;
  return {
    kind: 'edit',
    chat: { address: String(chat.id), kind: isPrivate(chat) ? 'direct' : 'group' },
    sender: { address: sender.address },
    platformMessageId: idOf(message.message_id, chat, receiver.bot),
    ...said,
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
  const all = sameToAll(chat) ? receiver.ours.map((bot) => messageIdOf(bot, number)) : [];
  return {
    kind: 'reaction',
    chat: { address: String(chat.id), kind: isPrivate(chat) ? 'direct' : 'group' },
    sender: person,
    platformMessageIds: [...new Set([idOf(number, chat, receiver.bot), ...all])],
    sign: emoji,
    sentAt: date * 1000,
  };
}

/** A custom emoji comes as a number without meaning, a paid one is a star. */
function emojiOf({ type, emoji }: { type: string; emoji?: string | undefined }): string {
  return emoji || (type === 'paid' ? '⭐' : 'an emoji');
}

/** The button below a draft means what the command /stop means. Only private chats have drafts. */
function stopOf({ chat, message_thread_id: thread }: Stopped, updateId: number, { bot }: Receiver) {
  if (!isPrivate(chat)) return null;
  const address = String(chat.id);
  const name = nameOf(chat);
  const stop: InboundMessage = {
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
  return stop;
}

/** A reply outside of topics has a thread id, too, but is in no thread; the general topic has none. */
function threadOf(message: Message): string | null {
  const { is_topic_message, message_thread_id } = message;
  return is_topic_message && message_thread_id !== undefined ? String(message_thread_id) : null;
}

/**
 * Who speaks; null for bots. For who posts as a chat (an anonymous administrator as the group itself, a channel in its
 * discussion group) Telegram names a bot of its own as the sender, and the chat beside it.
 */
function senderOf(
  message: Author & Pick<Message, 'chat'>,
  { ours }: Receiver,
): InboundMessage['sender'] | null {
  const { from, sender_chat: as, chat } = message;
  if (as !== undefined) {
    const administrator = as.id === chat.id;
    const signature = administrator ? message.author_signature : undefined;
    return {
      address: String(as.id),
      name: signature || as.title || as.username || String(as.id),
      administrator,
    };
  }
  if (from === undefined || from.is_bot || ours.some(({ id }) => id === from.id)) return null;
  return { address: String(from.id), name: nameOf(from), administrator: false };
}

function nameOf(user: Pick<User, 'id' | 'first_name' | 'last_name' | 'username'>): string {
  const name = [user.first_name, user.last_name].filter(Boolean).join(' ').trim();
  return name || user.username || String(user.id);
}

type Said = Pick<InboundMessage, 'text' | 'attachments' | 'mentionsBot' | 'addresses'>;

/**
 * Words and files. What has neither gets a label in a direct chat, where somebody waits for an answer; what has no
 * label either is nothing.
 */
function saidIn(message: Message, receiver: Receiver): Said | null {
  // Only the bot that received a file may fetch it.
  const files = attachmentsIn(message).map((file) => ({
    ...file,
    source: messageIdOf(receiver.bot, file.source),
  }));
  const attachments = files.length === 0 ? {} : { attachments: files };
  const words = wordsOf(message);
  const label = files.length > 0 ? '' : isPrivate(message.chat) ? mediaLabel(message) : null;
  if (words === '' && label === null) return null;
  const { text, bots } = mentionsIn(words, message, receiver.ours);
  // What is said to a persona's own bot alone is said to that persona.
  const isToPersona = isPrivate(message.chat) && receiver.bot.personaId !== undefined;
  const mentioned = isToPersona ? [receiver.bot, ...bots] : bots;
  const personas = new Set(mentioned.map((bot) => bot.personaId).filter((id) => id !== undefined));
  return {
    text: words === '' ? (label ?? '') : text,
    ...attachments,
    mentionsBot: mentioned.length > 0,
    ...(personas.size === 0 ? {} : { addresses: [...personas] }),
  };
}

/** A person's id is positive, a group's is not. */
function isPrivate(chat: Pick<Message['chat'], 'id' | 'type'>): boolean {
  return chat.type === undefined ? chat.id > 0 : chat.type === 'private';
}

/** Whether every bot has the same number for a message there. */
function sameToAll(chat: Message['chat']): boolean {
  return chat.type === undefined ? isShared(String(chat.id)) : chat.type === 'supergroup';
}

function idOf(number: number, chat: Message['chat'], bot: OurBot): string {
  return sameToAll(chat) ? String(number) : messageIdOf(bot, number);
}

function wordsOf(content: Content): string {
  return content.text || content.caption || '';
}

/** In a topic, Telegram calls every message a reply to the service message that opened the topic: that is none. */
function replyOf(message: Message, receiver: Receiver): ReplyTo | null {
  const { chat, reply_to_message: replied } = message;
  if (replied === undefined || replied.forum_topic_created !== undefined) return null;
  if (message.is_topic_message && replied.message_id === message.message_thread_id) return null;
  const author = receiver.ours.find(({ id }) => id === replied.from?.id);
  const sender = senderOf({ ...replied, chat }, receiver);
  // What one of our bots sent is stored under the id that this bot gave it when it was sent.
  const ownId = author !== undefined && sameToAll(chat) ? messageIdOf(author, replied.message_id) : null;
  return {
    platformMessageId: ownId ?? idOf(replied.message_id, chat, receiver.bot),
    senderName: sender?.name ?? (replied.from ? nameOf(replied.from) : ''),
    text: message.quote?.text || wordsOf(replied) || mediaLabel(replied) || '',
    ours: author !== undefined,
    ...(author?.personaId === undefined ? {} : { personaId: author.personaId }),
  };
}
