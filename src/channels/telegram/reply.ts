/** What a message answers: the message, as far as Telegram sent it along, and its files. Pure. */
import type { Attachment, ReplyTo } from '../../core/message.js';
import { foreignWriterOf, nameOf, originName, senderOf } from './author.js';
import type { Receiver } from './bots.js';
import { wordsOf } from './content.js';
import { filesIn } from './files.js';
import { labelOf } from './label.js';
import { idOf, isShared, messageIdOf } from './message-id.js';
import type { Message } from './update.js';

export function replyOf(message: Message, receiver: Receiver): ReplyTo | null {
  return here(message, receiver) ?? elsewhere(message, receiver);
}

/** Of a message that is answered. Only the bot that received the answer may fetch them. */
export function repliedFilesOf(message: Message): Attachment[] {
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
