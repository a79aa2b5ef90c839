/**
 * Telegram's updates in our words. Pure, and total: whatever an update holds, it becomes events or nothing.
 * Messages of bots, service messages and kinds we do not know are nothing.
 */
import type { InboundEvent, InboundMessage, ReplyTo } from '../../core/message.js';
import { attachmentsIn, mediaLabel } from './media.js';
import { type Author, type Content, type Message, readUpdate, type User } from './update.js';

/** Our own bot, as getMe tells it. */
export interface Me {
  id: number;
  username: string;
}

/** A move is told in the old chat and in the new one; of one batch it is one event. */
export function inbound(updates: readonly unknown[], me: Me): InboundEvent[] {
  const events: InboundEvent[] = [];
  const moves = new Set<string>();
  for (const update of updates) {
    const event = eventOf(update, me);
    if (event === null) continue;
    if (event.kind === 'moved') {
      if (moves.has(event.from)) continue;
      moves.add(event.from);
    }
    events.push(event);
  }
  return events;
}

function eventOf(update: unknown, me: Me): InboundEvent | null {
  const read = readUpdate(update);
  if (read?.message) return moveOf(read.message) ?? messageOf(read.message, me);
  if (read?.edited_message) return editOf(read.edited_message, me);
  return null;
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

function messageOf(message: Message, me: Me): InboundMessage | null {
  const { chat } = message;
  const sender = senderOf(message);
  const said = saidIn(message, me);
  if (sender === null || said === null || chat.type === 'channel') return null;
  const direct = isPrivate(chat);
  return {
    kind: 'message',
    chat: {
      address: String(chat.id),
      kind: direct ? 'direct' : 'group',
      title: direct ? sender.name : chat.title || String(chat.id),
    },
    threadId: threadOf(message),
    platformMessageId: String(message.message_id),
    sender,
    ...said,
    sentAt: (message.date ?? 0) * 1000,
    replyTo: replyOf(message, me),
  };
}

function editOf(message: Message, me: Me): InboundEvent | null {
  const { chat } = message;
  const sender = senderOf(message);
  const said = saidIn(message, me);
  if (said === null || sender === null || chat.type === 'channel') return null;
  return {
    kind: 'edit',
    chat: { address: String(chat.id), kind: isPrivate(chat) ? 'direct' : 'group' },
    sender: { address: sender.address },
    platformMessageId: String(message.message_id),
    ...said,
    editedAt: (message.edit_date ?? message.date ?? 0) * 1000,
  };
}

/** A reply outside of topics carries a thread id, too, and is none; the general topic has none. */
function threadOf(message: Message): string | null {
  const { is_topic_message, message_thread_id } = message;
  return is_topic_message && message_thread_id !== undefined ? String(message_thread_id) : null;
}

/**
 * Who speaks; null for bots. Who posts as a chat (an anonymous administrator as the group itself, a channel's
 * post in its discussion group) comes from a stand-in of Telegram's that is a bot.
 */
function senderOf(message: Author & Pick<Message, 'chat'>): InboundMessage['sender'] | null {
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
  if (from === undefined || from.is_bot) return null;
  return { address: String(from.id), name: nameOf(from), administrator: false };
}

function nameOf(user: User): string {
  const name = [user.first_name, user.last_name].filter(Boolean).join(' ').trim();
  return name || user.username || String(user.id);
}

type Said = Pick<InboundMessage, 'text' | 'attachments' | 'mentionsBot'>;

/**
 * Words and files. What has neither has a label in a direct chat, where somebody waits for an answer; without one it
 * is nothing.
 */
function saidIn(message: Message, me: Me): Said | null {
  const files = attachmentsIn(message);
  const attachments = files.length === 0 ? {} : { attachments: files };
  const words = wordsOf(message);
  if (words !== '') return { ...withoutOurName(words, message, me), ...attachments };
  const text = files.length > 0 ? '' : isPrivate(message.chat) ? mediaLabel(message) : null;
  return text === null ? null : { text, ...attachments, mentionsBot: false };
}

/** Our own name on a command is left out (`/cmd@OurBot` is `/cmd`; another bot's stays). */
function withoutOurName(words: string, message: Message, me: Me): { text: string; mentionsBot: boolean } {
  const ourName = `@${me.username.toLowerCase()}`;
  let text = words;
  // Telegram marks names and commands; a bridge or an older server may not, and the words say the same.
  let mentionsBot = names(words.toLowerCase(), ourName);
  const entities = (message.text ? message.entities : message.caption_entities) ?? [];
  // From the end, so that the offsets before a shortened command still hold.
  for (const entity of entities.toSorted((one, other) => other.offset - one.offset)) {
    const end = entity.offset + entity.length;
    const named = words.slice(entity.offset, end).toLowerCase();
    if (entity.type === 'text_mention' && entity.user?.id === me.id) mentionsBot = true;
    if (entity.type === 'bot_command' && named.endsWith(ourName)) {
      mentionsBot = true;
      text = text.slice(0, end - ourName.length) + text.slice(end);
    }
  }
  const [opening, command = '', name = ''] = OPENING_COMMAND.exec(text) ?? [''];
  if (name.toLowerCase() !== ourName) return { text, mentionsBot };
  return { text: command + text.slice(opening.length), mentionsBot: true };
}

/** `/cmd@SomeBot` at the start of a message: the command, and the name with its sign. */
const OPENING_COMMAND = /^(\/\w{1,64})(@\w+)(?=\s|$)/;

/** Whether a name stands in the text as a word of its own. */
function names(text: string, name: string): boolean {
  for (let at = text.indexOf(name); at >= 0; at = text.indexOf(name, at + 1)) {
    if (!/[\w@/]/.test(text[at - 1] ?? ' ') && !/\w/.test(text[at + name.length] ?? ' ')) return true;
  }
  return false;
}

/** A person's id is positive, a group's is not. */
function isPrivate(chat: Message['chat']): boolean {
  return chat.type === undefined ? chat.id > 0 : chat.type === 'private';
}

function wordsOf(content: Content): string {
  return content.text || content.caption || '';
}

/** A message in a topic "answers" the service message that opened the topic: that is no reply. */
function replyOf(message: Message, me: Me): ReplyTo | null {
  const replied = message.reply_to_message;
  if (replied === undefined || replied.forum_topic_created !== undefined) return null;
  if (message.is_topic_message && replied.message_id === message.message_thread_id) return null;
  const ours = replied.from?.id === me.id;
  const sender = senderOf({ ...replied, chat: message.chat });
  return {
    platformMessageId: String(replied.message_id),
    senderName: sender?.name ?? (replied.from ? nameOf(replied.from) : ''),
    text: message.quote?.text || wordsOf(replied) || mediaLabel(replied) || '',
    ours,
  };
}
