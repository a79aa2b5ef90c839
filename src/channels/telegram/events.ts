/** Updates that are no messages: a chat's move, reactions, presses of buttons, a draft's stop. Pure. */
import type {
  CallbackQuery,
  Message,
  MessageGenerationStopped,
  MessageReactionUpdated,
  ReactionType,
} from 'grammy/types';
import type { InboundChoice, InboundEvent, InboundMessage } from '../../core/message.js';
import { idOf, isShared, messageIdOf, type OurBot, pressIdOf } from './bots.js';
import { addressOf, isPrivate, nameOf, type ShownContent, senderOf, threadOf } from './update.js';

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
