/**
 * In a basic group several copies of a message reach us, one for each of our bots and under ids that differ
 * (`message-id.ts`). What they have in common tells which are copies of one.
 */
import { createHash } from 'node:crypto';
import type { Attachment, InboundChoice, InboundEvent, InboundMessage, ReplyTo } from '../../core/message.js';
import { bounded } from '../kit/bounded.js';
import { boundedEvent } from '../kit/incoming.js';
import { idOf, isShared, messageIdOf, type OurBot, pressIdOf, type Receiver } from './bots.js';
import { foreignWriterOf, labelOf, nameOf, originName, saidIn, senderOf, wordsOf } from './content.js';
import { filesIn } from './files.js';
import { type Message, type Press, type Reaction, readUpdate, type Stopped } from './update.js';

/** Of how many messages copies are recognised: they come within seconds. */
const MOST_COPIED = 1_000;

/**
 * The same for all copies of a message, and for two messages that nothing but their numbers tells apart. `words`: what
 * it shows, whatever it is. Pure.
 */
function copyKeyOf(message: Message, words: string, sender: string): string {
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

// What a message answers: the message, as far as Telegram sent it along, and its files. Pure.

function replyOf(message: Message, receiver: Receiver): ReplyTo | null {
  return here(message, receiver) ?? elsewhere(message, receiver);
}

/** Of a message that is answered. Only the bot that received the answer may fetch them. */
function repliedFilesOf(message: Message): Attachment[] {
  const replied = repliedIn(message) ?? message.external_reply ?? {};
  return filesIn(replied).map((file) => ({ ...file, ofReply: true }));
}

/** In a topic, Telegram calls every message a reply to the service message that opened the topic: that is none. */
function repliedIn(message: Message): Message['reply_to_message'] {
  const { reply_to_message: replied } = message;
  if (replied?.forum_topic_created !== undefined) return undefined;
  if (message.is_topic_message && replied?.message_id === message.message_thread_id) return undefined;
  return replied;
}

function here(message: Message, receiver: Receiver): ReplyTo | null {
  const { chat, quote } = message;
  const replied = repliedIn(message);
  if (replied === undefined) return null;
  const sender = senderOf({ ...replied, chat }, receiver);
  const writer = foreignWriterOf(replied);
  // A part that Telegram chose by itself says less than the whole.
  const chosen = quote?.is_manual ? quote.text : '';
  return {
    senderName: sender?.name ?? (replied.from ? nameOf(replied.from) : ''),
    text: chosen || itemOf(message) || wordsOf(replied) || labelOf(replied) || quote?.text || '',
    ...(writer === undefined ? {} : { forwardedFrom: writer }),
    ...sentBy(replied.from?.id, replied.message_id, chat, receiver),
  };
}

/** Of a checklist or a poll somebody may answer a single line. */
function itemOf(message: Message): string | undefined {
  const { checklist, poll } = message.reply_to_message ?? {};
  const { reply_to_checklist_task_id: task, reply_to_poll_option_id: option } = message;
  const line =
    checklist?.tasks?.find(({ id }) => id !== undefined && id === task) ??
    poll?.options?.find(({ persistent_id: id }) => id !== undefined && id === option);
  return line?.text;
}

/** A message of another chat, or of another topic of this one: of its words there is nothing but what is quoted. */
function elsewhere({ chat, external_reply: replied, quote }: Message, receiver: Receiver): ReplyTo | null {
  if (replied === undefined) return null;
  const { origin = {}, chat: there, message_id: number } = replied;
  const said = { senderName: originName(origin), text: quote?.text || labelOf(replied) || '' };
  if (there?.id === chat.id && number !== undefined) {
    return { ...said, ...sentBy(origin.sender_user?.id, number, chat, receiver) };
  }
  // Also of what one of our bots said there: here, nobody turns to it by that.
  return {
    ...said,
    platformMessageId: `${there?.id ?? 'elsewhere'}/${number ?? ''}`,
    elsewhere: true,
    ours: false,
  };
}

/** What one of our bots sent is stored under the id that this bot gave it when it was sent. */
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

// Telegram's updates in our words, as they come from `intake.ts` and go to step 1 of the route: who speaks
// (`author.ts`), what they say (`content.ts`), what they answer (`reply.ts`). Pure, and total: whatever an update holds,
// it becomes events or nothing. Messages of bots, service messages and kinds we do not know are nothing.

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
