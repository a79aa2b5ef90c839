/** Telegram's updates as events, for step 1 of the route. Pure and total: unknown ones become nothing. */
import { createHash } from 'node:crypto';
import type {
  CallbackQuery,
  Message,
  MessageGenerationStopped,
  MessageReactionUpdated,
  ReactionType,
} from 'grammy/types';
import { LRUCache } from 'lru-cache';
import type { InboundChoice, InboundEvent, InboundMessage, ReplyTo } from '../../core/message.js';
import { boundedEvent } from '../kit/incoming.js';
import { idOf, isShared, messageIdOf, type OurBot, pressIdOf, type Receiver } from './bots.js';
import { foreignWriterOf, labelOf, nameOf, originName, saidIn, senderOf, wordsOf } from './content.js';
import { type ForwardOrigin, readUpdate, type ShownContent } from './update.js';

/** Telegram reports a move in the old chat and the new one; within one batch it becomes one event. */
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
  if (read.message) return moveOf(read.message) ?? messageOf(read.message, receiver);
  if (read.edited_message) return editOf(read.edited_message, receiver);
  if (read.message_reaction) return reactionOf(read.message_reaction, receiver);
  if (read.callback_query) return choiceOf(read.callback_query, receiver);
  const { stopped_message_generation: stopped, update_id: id } = read;
  return stopped && id !== undefined ? stopOf(stopped, id, receiver) : null;
}

function moveOf({ chat, migrate_to_chat_id: to, migrate_from_chat_id: from }: Message): InboundEvent | null {
  if (to !== undefined) return { kind: 'moved', from: String(chat.id), to: String(to) };
  return from === undefined ? null : { kind: 'moved', from: String(from), to: String(chat.id) };
}

function messageOf(message: Message, receiver: Receiver): InboundMessage | null {
  const { chat } = message;
  const direct = isPrivate(chat);
  const sender = senderOf(message, chat, receiver);
  const said = saidIn(message, answeredIn(message), { ...receiver, direct });
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
    ...(hasCopies ? { dedupeKey: copyKeyOf(message, said.text, sender.address) } : {}),
    replyTo: replyTo(message, receiver),
    ...(message.media_group_id ? { album: message.media_group_id } : {}),
  };
}

function editOf(message: Message, receiver: Receiver): InboundEvent | null {
  const { chat } = message;
  const sender = senderOf(message, chat, receiver);
  const said = saidIn(message, answeredIn(message), { ...receiver, direct: isPrivate(chat) });
  if (said === null || sender === null || chat.type === 'channel') return null;
  // A live location updates every few seconds for hours: a question about it was asked at its start.
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

/** An update lists all emoji that somebody has put on a message: this takes the newest. */
function reactionOf(reaction: MessageReactionUpdated, receiver: Receiver): InboundEvent | null {
  const { chat, message_id: number, date = 0, old_reaction: old = [], new_reaction: now = [] } = reaction;
  const speaker = { from: reaction.user, sender_chat: reaction.actor_chat } as ShownContent;
  const sender = senderOf(speaker, chat, receiver);
  const before = old.map(emojiOf);
  const emoji = now.map(emojiOf).findLast((each) => !before.includes(each));
  if (sender === null || emoji === undefined || chat.type === 'channel') return null;
  // Where all bots share a message's number, the update does not tell which of them sent it.
  const all = isShared(chat.id) ? receiver.ours.map((bot) => messageIdOf(bot, number)) : [];
  return {
    kind: 'reaction',
    chat: addressOf(chat),
    sender: { address: sender.address, name: sender.name },
    platformMessageIds: [...new Set([idOf(number, chat, receiver.bot), ...all])],
    sign: emoji,
    sentAt: date * 1000,
  };
}

/** A custom emoji is only a number, a paid one is a star. */
function emojiOf(reaction: ReactionType): string {
  return (reaction.type === 'emoji' && reaction.emoji) || (reaction.type === 'paid' ? '⭐' : 'an emoji');
}

function choiceOf(press: CallbackQuery, { bot }: Receiver): InboundChoice | null {
  const { from, message, data } = press;
  if (message === undefined || data === undefined || from.is_bot) return null;
  return {
    kind: 'choice',
    chat: addressOf(message.chat),
    threadId: threadOf(message as Message),
    sender: { address: String(from.id), name: nameOf(from), administrator: false },
    platformMessageId: pressIdOf(bot, press),
    value: data,
    sentAt: 0,
  };
}

/** The button below a draft means the command /stop. Only private chats have drafts. */
function stopOf(
  stopped: MessageGenerationStopped,
  updateId: number,
  { bot }: Receiver,
): InboundMessage | null {
  const { chat, message_thread_id: thread } = stopped;
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

/** A reply outside of topics has a thread id, too, but is in no thread; the general topic has none. */
function threadOf(message: Message): string | null {
  const { is_topic_message: isInTopic, message_thread_id: thread } = message;
  return isInTopic && thread !== undefined ? String(thread) : null;
}

function addressOf(chat: Message['chat']): { address: string; kind: 'direct' | 'group' } {
  return { address: String(chat.id), kind: isPrivate(chat) ? 'direct' : 'group' };
}

/** A person's id is positive, a group's is not. */
function isPrivate({ id, type }: Message['chat']): boolean {
  return ['group', 'supergroup', 'channel'].includes(type) ? false : type === 'private' || id > 0;
}

// The message that a reply answers, as far as Telegram included it.

function replyTo(message: Message, receiver: Receiver): ReplyTo | null {
  return replyHere(message, receiver) ?? replyElsewhere(message, receiver);
}

function answeredIn(message: Message): ShownContent {
  return repliedIn(message) ?? (message.external_reply as ShownContent | undefined) ?? {};
}

/** In a topic, every message claims to reply to the service message that opened it: ignored. */
function repliedIn(message: Message): Message | undefined {
  const replied: Message | undefined = message.reply_to_message;
  if (replied?.forum_topic_created !== undefined) return undefined;
  if (message.is_topic_message && replied?.message_id === message.message_thread_id) return undefined;
  return replied;
}

function replyHere(message: Message, receiver: Receiver): ReplyTo | null {
  const { chat, quote } = message;
  const replied = repliedIn(message);
  if (replied === undefined) return null;
  const sender = senderOf(replied, chat, receiver);
  const writer = foreignWriterOf(replied);
  // A quote chosen by Telegram says less than the whole message.
  const chosen = quote?.is_manual ? quote.text : '';
  return {
    senderName: sender?.name ?? (replied.from ? nameOf(replied.from) : ''),
    text: chosen || lineOf(message) || wordsOf(replied) || labelOf(replied) || quote?.text || '',
    ...(writer === undefined ? {} : { forwardedFrom: writer }),
    ...sentBy(replied.from?.id, replied.message_id, chat, receiver),
  };
}

/** A reply may answer a single line of a checklist or poll. */
function lineOf(message: Message): string | undefined {
  const { checklist, poll } = (message.reply_to_message ?? {}) as ShownContent;
  const { reply_to_checklist_task_id: task, reply_to_poll_option_id: option } = message;
  const line =
    checklist?.tasks?.find(({ id }) => id !== undefined && id === task) ??
    poll?.options?.find(({ persistent_id: id }) => id !== undefined && id === option);
  return line?.text;
}

/** A reply to another chat or another topic: only the quoted words are known. */
function replyElsewhere(message: Message, receiver: Receiver): ReplyTo | null {
  const { chat, external_reply: replied, quote } = message;
  if (replied === undefined) return null;
  const { chat: there, message_id: number } = replied;
  const origin: ForwardOrigin = replied.origin ?? {};
  const said = {
    senderName: originName(origin),
    text: quote?.text || labelOf(replied as ShownContent) || '',
  };
  if (there?.id === chat.id && number !== undefined) {
    return { ...said, ...sentBy(origin.sender_user?.id, number, chat, receiver) };
  }
  // Even if one of our bots said it: a reply from elsewhere does not address it here.
  return {
    ...said,
    platformMessageId: `${there?.id ?? 'elsewhere'}/${number ?? ''}`,
    elsewhere: true,
    ours: false,
  };
}

/** Our messages are stored under the id that the sending bot gave them. */
function sentBy(
  from: number | undefined,
  number: number,
  chat: Message['chat'],
  { bot, ours }: Receiver,
): Pick<ReplyTo, 'platformMessageId' | 'ours' | 'personaId'> {
  const author = ours.find(({ id }) => id === from);
  if (author === undefined) return { platformMessageId: idOf(number, chat, bot), ours: false };
  const platformMessageId = isShared(chat.id) ? messageIdOf(author, number) : idOf(number, chat, bot);
  const { personaId } = author;
  return { platformMessageId, ours: true, ...(personaId === undefined ? {} : { personaId }) };
}

// In a basic group each of our bots gets its own copy of a message, under its own id.

/** Copies of a message arrive within seconds. */
const MOST_COPIED = 1_000;

/** Equal for all copies of a message, and for messages that differ only in their numbers. */
function copyKeyOf(message: Message, words: string, sender: string): string {
  const { chat, date, reply_to_message: replied, quote } = message;
  const { photo = [], voice, video, video_note, animation, audio, document, live_photo } = message;
  // A file's id differs by bot; this one does not.
  const files = [...photo, voice, video, video_note, animation, audio, document, live_photo]
    .map((file) => file?.file_unique_id)
    .filter((id) => id !== undefined);
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
