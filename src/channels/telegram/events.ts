/** Reactions, presses of buttons and other updates that are no messages; and replies to messages. Pure. */

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
import { idOf, isShared, messageIdOf, type OurBot, pressIdOf } from './bots.js';
import { labelOf, wordsOf } from './content.js';
import {
  addressOf,
  type ForwardOrigin,
  foreignWriterOf,
  isPrivate,
  nameOf,
  originName,
  type ShownContent,
  senderOf,
  threadOf,
} from './update.js';

export function moveOf({ chat, migrate_to_chat_id: to, migrate_from_chat_id: from }: Message): InboundEvent {
  const [old, now] = to === undefined ? [from, chat.id] : [chat.id, to];
  return { kind: 'moved', from: String(old), to: String(now) };
}

/** An update lists all emoji that somebody has put on a message: this takes the newest. */
export function reactionOf(
  reaction: MessageReactionUpdated,
  bot: OurBot,
  ours: readonly OurBot[],
): InboundEvent | null {
  const { chat, message_id: number, date = 0, old_reaction: old = [], new_reaction: now = [] } = reaction;
  const speaker = { from: reaction.user, sender_chat: reaction.actor_chat } as ShownContent;
  const sender = senderOf(speaker, chat, ours);
  const before = old.map(emojiOf);
  const emoji = now.map(emojiOf).findLast((each) => !before.includes(each));
  if (sender === null || emoji === undefined || chat.type === 'channel') return null;
  // Where all bots share a message's number, the update does not tell which of them sent it.
  const all = isShared(chat.id) ? ours.map((each) => messageIdOf(each, number)) : [];
  return {
    kind: 'reaction',
    chat: addressOf(chat),
    sender: { address: sender.address, name: sender.name },
    platformMessageIds: [...new Set([idOf(number, chat, bot), ...all])],
    sign: emoji,
    sentAt: date * 1000,
  };
}

/** A custom emoji is only a number, a paid one is a star. */
function emojiOf(reaction: ReactionType): string {
  return (reaction.type === 'emoji' && reaction.emoji) || (reaction.type === 'paid' ? '⭐' : 'an emoji');
}

export function choiceOf(press: CallbackQuery, bot: OurBot): InboundChoice | null {
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
export function stopOf(
  { chat, message_thread_id: thread }: MessageGenerationStopped,
  updateId: number,
  bot: OurBot,
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

/** The message that a reply answers, as far as Telegram included it. */
export function replyTo(message: Message, bot: OurBot, ours: readonly OurBot[]): ReplyTo | null {
  return replyHere(message, bot, ours) ?? replyElsewhere(message, bot, ours);
}

export function answeredIn(message: Message): ShownContent {
  return repliedIn(message) ?? (message.external_reply as ShownContent | undefined) ?? {};
}

/** In a topic, every message claims to reply to the service message that opened it: ignored. */
function repliedIn(message: Message): Message | undefined {
  const replied: Message | undefined = message.reply_to_message;
  if (replied?.forum_topic_created !== undefined) return undefined;
  if (message.is_topic_message && replied?.message_id === message.message_thread_id) return undefined;
  return replied;
}

function replyHere(message: Message, bot: OurBot, ours: readonly OurBot[]): ReplyTo | null {
  const { chat, quote } = message;
  const replied = repliedIn(message);
  if (replied === undefined) return null;
  // A quote chosen by Telegram says less than the whole message.
  const chosen = quote?.is_manual ? quote.text : '';
  return {
    senderName: senderOf(replied, chat, ours)?.name ?? (replied.from ? nameOf(replied.from) : ''),
    text: chosen || lineOf(message) || wordsOf(replied) || labelOf(replied, true) || quote?.text || '',
    forwardedFrom: foreignWriterOf(replied),
    ...sentBy(replied.from?.id, replied.message_id, chat, bot, ours),
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
function replyElsewhere(message: Message, bot: OurBot, ours: readonly OurBot[]): ReplyTo | null {
  const { chat, external_reply: replied, quote } = message;
  if (replied === undefined) return null;
  const { chat: there, message_id: number } = replied;
  const origin: ForwardOrigin = replied.origin ?? {};
  const text = quote?.text || labelOf(replied as ShownContent, true) || '';
  const said = { senderName: originName(origin), text };
  if (there?.id === chat.id && number !== undefined) {
    return { ...said, ...sentBy(origin.sender_user?.id, number, chat, bot, ours) };
  }
  // Even if one of our bots said it: a reply from elsewhere does not address it here.
  const platformMessageId = `${there?.id ?? 'elsewhere'}/${number ?? ''}`;
  return { ...said, platformMessageId, elsewhere: true, ours: false };
}

/** Our messages are stored under the id that the sending bot gave them. */
function sentBy(
  from: number | undefined,
  number: number,
  chat: Message['chat'],
  bot: OurBot,
  ours: readonly OurBot[],
): Pick<ReplyTo, 'platformMessageId' | 'ours' | 'personaId'> {
  const author = ours.find(({ id }) => id === from);
  const isKnown = author !== undefined && isShared(chat.id);
  return {
    platformMessageId: isKnown ? messageIdOf(author, number) : idOf(number, chat, bot),
    ours: author !== undefined,
    personaId: author?.personaId ?? undefined,
  };
}

// In a basic group each of our bots gets its own copy of a message, under its own id.

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
