/** The message that a reply answers, as far as Telegram included it. Pure. */
import type { Message } from 'grammy/types';
import type { ReplyTo } from '../../core/message.js';
import { idOf, isShared, messageIdOf, type OurBot } from './bots.js';
import { labelOf, wordsOf } from './content.js';
import {
  type ForwardOrigin,
  foreignWriterOf,
  nameOf,
  originName,
  type ShownContent,
  senderOf,
} from './update.js';

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
