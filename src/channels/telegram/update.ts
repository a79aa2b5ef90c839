/**
 * Updates in the library's types, and who sent them where. Servers and strangers may send anything: a field of
 * the wrong JSON type is left out, as is an object without its essential fields. Any other field may be missing.
 */
import type { Chat, Message, Update, User, Voice } from 'grammy/types';
import type { InboundMessage } from '../../core/message.js';
import { text } from '../kit/incoming.js';

export const ALLOWED_UPDATES = [
  'message',
  'edited_message',
  'message_reaction',
  'stopped_message_generation',
  'callback_query',
] as const;

/** The content of a message: the message itself, the answered one, or one of another chat. */
export type ShownContent = Partial<Message>;

const names = (list: string) => list.trim().split(/\s+/);

const TEXTS = new Set(
  names(`address author_signature base_name caption data emoji file_id file_name file_unique_id first_name last_name
  media_group_id mime_type performer persistent_id phone_number prize_description question reply_to_poll_option_id
  sender_user_name text title type username`),
);
const NUMBERS = new Set(
  names(`completion_date date duration edit_date file_size height length live_period message_id message_thread_id
  migrate_from_chat_id migrate_to_chat_id number offset reply_to_checklist_task_id star_count update_id value width
  winner_count`),
);
const FLAGS = new Set(['is_automatic_forward', 'is_bot', 'is_manual', 'is_topic_message']);
const LISTS = new Set(
  names(`caption_entities entities marked_as_done_task_ids marked_as_not_done_task_ids new_reaction old_reaction
  options paid_media photo tasks`),
);
const OBJECTS = new Set(
  names(`animation audio callback_query chat checklist checklist_message checklist_tasks_added checklist_tasks_done
  contact dice document edited_message external_reply forward_origin from game gift giveaway giveaway_winners invoice
  live_photo location message message_reaction origin paid_media poll quote reply_to_message rich_message sender_chat
  sender_user sticker stopped_message_generation story unique_gift user actor_chat venue via_bot video video_note voice
  voice_note`),
);

/** An object without these is useless. */
const ESSENTIAL: Readonly<Record<string, readonly string[]>> = {
  ...Object.fromEntries(
    names('actor_chat chat from sender_chat sender_user user via_bot').map((name) => [name, ['id']]),
  ),
  callback_query: ['id', 'from'],
  caption_entities: ['type', 'offset', 'length'],
  edited_message: ['message_id', 'chat'],
  entities: ['type', 'offset', 'length'],
  message: ['message_id', 'chat'],
  message_reaction: ['message_id', 'chat'],
  options: ['text'],
  quote: ['text'],
  reply_to_message: ['message_id'],
  stopped_message_generation: ['chat'],
  tasks: ['text'],
};

/** Deeper than any field that is read. */
const DEEPEST = 12;

export function readUpdate(update: unknown): Partial<Update> {
  return object('update', update, 0) ?? {};
}

/** The file fields of a rich message's block. */
export function readBlock(block: unknown): ShownContent & { voice_note?: Voice } {
  return object('block', block, 0) ?? {};
}

function object(kind: string, value: unknown, depth: number): Record<string, unknown> | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || depth > DEEPEST)
    return undefined;
  const found: Record<string, unknown> = {};
  for (const [name, given] of Object.entries(value)) {
    const read = field(kind, name, given, depth);
    if (read !== undefined && read !== null) found[name] = read;
  }
  return (ESSENTIAL[kind] ?? []).every((name) => name in found) ? found : undefined;
}

/** A field that is not read stays unchanged: its name reveals message kinds newer than this code. */
function field(kind: string, name: string, value: unknown, depth: number): unknown {
  if (TEXTS.has(name) || (name === 'id' && kind === 'callback_query')) return text(value);
  if (NUMBERS.has(name) || name === 'id') return Number.isSafeInteger(value) ? value : undefined;
  if (FLAGS.has(name)) return value === true;
  if (LISTS.has(name) && Array.isArray(value)) {
    const items = value.map((each) => (typeof each === 'number' ? each : object(name, each, depth + 1)));
    return items.filter((each) => each !== undefined);
  }
  if (OBJECTS.has(name)) return object(name, value, depth + 1);
  return LISTS.has(name) ? undefined : value;
}

/** The sender; null for bots. A post as a chat names Telegram's own bot, with the chat next to it. */
export function senderOf(
  { from, sender_chat: as, author_signature: signature }: ShownContent,
  chat: { id: number },
  ours: readonly { id: number }[],
): InboundMessage['sender'] | null {
  if (as !== undefined) {
    const administrator = as.id === chat.id;
    return { address: String(as.id), name: (administrator && signature) || nameOf(as), administrator };
  }
  if (from === undefined || from.is_bot || ours.some(({ id }) => id === from.id)) return null;
  return { address: String(from.id), name: nameOf(from), administrator: false };
}

export function nameOf(one: User | Chat): string {
  const { title, first_name, last_name, username }: Partial<Record<string, unknown>> = { ...one };
  const name = [first_name, last_name].filter(Boolean).join(' ').trim();
  return String(title || name || username || one.id);
}

/** The origin of a forward: one of these, by its kind. */
export interface ForwardOrigin {
  sender_user?: User;
  sender_user_name?: string;
  sender_chat?: Chat;
  chat?: Chat;
}

/** Empty if Telegram does not say. A hidden account is only a name. */
export function originName({ sender_user, sender_user_name, sender_chat, chat }: ForwardOrigin): string {
  const known = sender_user ?? sender_chat ?? chat;
  return known === undefined ? (sender_user_name ?? '') : nameOf(known);
}

/** The writer of words that the sender did not write; empty if unknown, undefined for the sender's own. */
export function foreignWriterOf(message: ShownContent): string | undefined {
  if (message.forward_origin !== undefined) return originName(message.forward_origin as ForwardOrigin);
  if (message.via_bot !== undefined) return nameOf(message.via_bot);
  return message.is_automatic_forward ? '' : undefined;
}

/** A person's id is positive, a group's is not. */
export function isPrivate({ id, type }: Chat): boolean {
  return ['group', 'supergroup', 'channel'].includes(type) ? false : type === 'private' || id > 0;
}

export function addressOf(chat: Chat): { address: string; kind: 'direct' | 'group' } {
  return { address: String(chat.id), kind: isPrivate(chat) ? 'direct' : 'group' };
}

/** A reply outside of topics has a thread id, too, but is in no thread; the general topic has none. */
export function threadOf({ is_topic_message: isInTopic, message_thread_id: thread }: ShownContent) {
  return isInTopic && thread !== undefined ? String(thread) : null;
}
