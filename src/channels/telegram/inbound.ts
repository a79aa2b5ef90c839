/** Telegram's updates as events, for step 1 of the route. Pure and total: unknown ones become nothing. */
import type { Message, Update } from 'grammy/types';
import type { InboundEdit, InboundEvent, InboundMessage } from '../../core/message.js';
import { boundedEvent, mentioning } from '../kit/incoming.js';
import { idOf, isShared, messageIdOf, type OurBot } from './bots.js';
import { filesIn, labelOf, wordsOf } from './content.js';
import { answeredIn, choiceOf, copyKeyOf, moveOf, reactionOf, replyTo, stopOf } from './events.js';
import {
  addressOf,
  foreignWriterOf,
  isPrivate,
  readUpdate,
  type ShownContent,
  senderOf,
  threadOf,
} from './update.js';

/** `bot`: the one that got the updates; `ours`: all bots that they may mention. */
export function inbound(
  updates: readonly unknown[],
  bot: OurBot,
  ours: readonly OurBot[] = [bot],
): InboundEvent[] {
  const moves = new Set<string>();
  return updates.flatMap((update) => {
    const event = eventOf(readUpdate(update), bot, ours);
    if (event === null) return [];
    if (event.kind === 'moved') {
      // Telegram reports a move in the old chat and in the new one.
      if (moves.has(event.from)) return [];
      moves.add(event.from);
    }
    return boundedEvent(event);
  });
}

function eventOf(update: Partial<Update>, bot: OurBot, ours: readonly OurBot[]): InboundEvent | null {
  const { message, edited_message: edited, message_reaction: reaction, callback_query: press } = update;
  if (message?.migrate_to_chat_id !== undefined || message?.migrate_from_chat_id !== undefined) {
    return moveOf(message);
  }
  if (message) return messageOf(message, bot, ours);
  if (edited) return editOf(edited, bot, ours);
  if (reaction) return reactionOf(reaction, bot, ours);
  if (press) return choiceOf(press, bot);
  const { stopped_message_generation: stopped, update_id: id } = update;
  return stopped && id !== undefined ? stopOf(stopped, id, bot) : null;
}

/** null for bots, posts of channels and service messages. */
function heardIn(message: Message, bot: OurBot, ours: readonly OurBot[]) {
  const sender = senderOf(message, message.chat, ours);
  const said = saidIn(message, bot, ours);
  return sender === null || said === null || message.chat.type === 'channel' ? null : { sender, said };
}

function messageOf(message: Message, bot: OurBot, ours: readonly OurBot[]): InboundMessage | null {
  const { chat } = message;
  const heard = heardIn(message, bot, ours);
  if (heard === null) return null;
  const { sender, said } = heard;
  const direct = isPrivate(chat);
  const hasCopies = !direct && ours.length > 1 && !isShared(chat.id);
  return {
    kind: 'message',
    chat: { ...addressOf(chat), title: direct ? sender.name : chat.title || String(chat.id) },
    threadId: threadOf(message),
    platformMessageId: idOf(message.message_id, chat, bot),
    sender,
    ...said,
    sentAt: (message.date ?? 0) * 1000,
    dedupeKey: hasCopies ? copyKeyOf(message, said.text, sender.address) : undefined,
    replyTo: replyTo(message, bot, ours),
    album: message.media_group_id || undefined,
  };
}

function editOf(message: Message, bot: OurBot, ours: readonly OurBot[]): InboundEdit | null {
  const { chat } = message;
  const heard = heardIn(message, bot, ours);
  // A live location updates every few seconds for hours: a question about it was asked at its start.
  if (heard === null || message.location !== undefined) return null;
  const { addresses: _addresses, forwardedFrom: _from, ...words } = heard.said;
  return {
    kind: 'edit',
    chat: addressOf(chat),
    sender: { address: heard.sender.address },
    platformMessageId: idOf(message.message_id, chat, bot),
    ...words,
    editedAt: (message.edit_date ?? message.date ?? 0) * 1000,
  };
}

type Said = Pick<
  InboundMessage,
  'text' | 'attachments' | 'mentions' | 'mentionsBot' | 'addresses' | 'forwardedFrom'
>;

/**
 * Words and files, those of the answered message included. Other content gets a label: always in a direct
 * chat, since an answer is expected; in a group if worth hearing. null: nothing.
 */
function saidIn(message: Message, bot: OurBot, ours: readonly OurBot[]): Said | null {
  const direct = isPrivate(message.chat);
  const own = filesIn(message);
  const words = wordsOf(message) || (own.length > 0 ? '' : labelOf(message, direct));
  if (words === null) return null;
  const others = filesIn(answeredIn(message));
  // Only the bot that received a file may fetch it.
  const attachments = [...own, ...others.map((file) => ({ ...file, ofReply: true as const }))].map(
    (file) => ({ ...file, source: messageIdOf(bot, file.source) }),
  );
  return {
    ...spoken(words, message, bot, ours),
    attachments: attachments.length === 0 ? undefined : attachments,
  };
}

/** The words and the bots they address. Words that somebody else wrote address none of us. */
function spoken(words: string, message: Message, bot: OurBot, ours: readonly OurBot[]): Said {
  const direct = isPrivate(message.chat);
  // A message to a persona's own bot in a direct chat is for that persona.
  const own = direct && bot.personaId ? [bot] : [];
  const forwardedFrom = foreignWriterOf(message);
  if (forwardedFrom !== undefined) {
    return { text: words, mentionsBot: false, addresses: personasOf(own), forwardedFrom };
  }
  const { text, bots, called } = mentionsIn(words, message, ours);
  const mentioned = [...own, ...bots];
  // Where personas have bots, addressing the main one excludes them, even if the words name them.
  const isForMain = !direct && ours.length > 1 && called.some(({ personaId }) => !personaId);
  return {
    text,
    ...mentioning(namesIn(words, message)),
    mentionsBot: mentioned.length > 0,
    addresses: personasOf(mentioned) ?? (isForMain ? [] : undefined),
  };
}

function personasOf(bots: OurBot[]): string[] | undefined {
  const personas = new Set(bots.flatMap(({ personaId }) => personaId ?? []));
  return personas.size === 0 ? undefined : [...personas];
}

function entitiesOf({ text, entities, caption_entities }: ShownContent) {
  return (text ? entities : caption_entities) ?? [];
}

/** Mentions by name, for accounts without a handle. */
function namesIn(words: string, message: ShownContent): string[] {
  return entitiesOf(message).flatMap(({ type, offset, length }) =>
    type === 'text_mention' ? [words.slice(offset, offset + length)] : [],
  );
}

/** `/cmd@SomeBot`, of which it captures the handle. */
const COMMAND = /(?<![\w@/])\/\w{1,64}(@\w+)/g;

/**
 * Our bots mentioned, in order (by username, by mention, after a command); which of these are addressed, at
 * the start or the end; and the words without our names on commands (`/cmd@OurBot` becomes `/cmd`; another
 * bot's stays). Telegram marks all these, but a bridge or an older server may not, so the words count.
 */
function mentionsIn(words: string, message: ShownContent, ours: readonly OurBot[]) {
  const found = new Map<OurBot, number>();
  const mention = (bot: OurBot, at: number) => found.set(bot, Math.min(at, found.get(bot) ?? at));
  const lower = words.toLowerCase();
  for (const bot of ours) {
    const at = positionOf(lower, handleOf(bot));
    if (at >= 0) mention(bot, at);
  }
  for (const entity of entitiesOf(message)) {
    const bot = entity.type === 'text_mention' && ours.find(({ id }) => id === entity.user?.id);
    if (bot) mention(bot, entity.offset);
  }
  const text = words.replace(COMMAND, (command: string, handle: string, at: number) => {
    const bot = ours.find((each) => handleOf(each) === handle.toLowerCase());
    if (bot === undefined) return command;
    mention(bot, at);
    return command.slice(0, -handle.length);
  });
  const inOrder = [...found].toSorted(([, one], [, other]) => one - other);
  const called = inOrder.filter(([, at]) => isFirstOrLast(words, at));
  return { text, bots: inOrder.map(([bot]) => bot), called: called.map(([bot]) => bot) };
}

/** After at most a greeting, or with nothing after it. */
function isFirstOrLast(words: string, at: number): boolean {
  return /^\s*(?:\S+\s+){0,2}$/u.test(words.slice(0, at)) || /^\S+\s*$/u.test(words.slice(at));
}

function handleOf({ username }: OurBot): string {
  return username === '' ? '' : `@${username.toLowerCase()}`;
}

/** Position of the name as a word of its own; -1 if absent. */
function positionOf(text: string, name: string): number {
  if (name === '') return -1;
  for (let at = text.indexOf(name); at >= 0; at = text.indexOf(name, at + 1)) {
    if (!/[\w@/]/.test(text[at - 1] ?? ' ') && !/\w/.test(text[at + name.length] ?? ' ')) return at;
  }
  return -1;
}
