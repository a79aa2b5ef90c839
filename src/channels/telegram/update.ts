/**
 * Updates in the library's types. Servers and strangers may send anything: a field of the wrong JSON type is
 * absent, as is an object without its essential fields. Fields that the types call required may be missing.
 */
import type { Chat, Message, Update, User, Voice } from 'grammy/types';
import { text } from '../kit/incoming.js';

/** Update kinds to request from Telegram. */
export const ALLOWED_UPDATES = [
  'message',
  'edited_message',
  'message_reaction',
  'stopped_message_generation',
  'callback_query',
] as const;

/** The content of a message: the message itself, the answered one, or one of another chat. */
export type ShownContent = Partial<Message>;

/** The origin of a forward: one of these, by its kind. */
export interface ForwardOrigin {
  sender_user?: User;
  sender_user_name?: string;
  sender_chat?: Chat;
  chat?: Chat;
}

const names = (list: string) => new Set(list.trim().split(/\s+/));

const TEXTS = names(`
  address author_signature base_name caption data emoji file_id file_name file_unique_id first_name last_name
  media_group_id mime_type performer persistent_id phone_number prize_description question reply_to_poll_option_id
  sender_user_name text title type username`);
const NUMBERS = names(`
  completion_date date duration edit_date file_size height length live_period message_id message_thread_id
  migrate_from_chat_id migrate_to_chat_id number offset reply_to_checklist_task_id star_count update_id value width
  winner_count`);
const FLAGS = names('is_automatic_forward is_bot is_manual is_topic_message');
const LISTS = names(`
  caption_entities entities marked_as_done_task_ids marked_as_not_done_task_ids new_reaction old_reaction options
  paid_media photo tasks`);
const OBJECTS = names(`
  animation audio callback_query chat checklist checklist_message checklist_tasks_added checklist_tasks_done contact dice
  document edited_message external_reply forward_origin from game gift giveaway giveaway_winners invoice live_photo
  location message message_reaction origin paid_media poll quote reply_to_message rich_message sender_chat sender_user
  sticker stopped_message_generation story unique_gift user actor_chat venue via_bot video video_note voice voice_note`);

/** An object without these is useless. */
const ESSENTIAL: Readonly<Record<string, readonly string[]>> = {
  ...Object.fromEntries(
    ['actor_chat', 'chat', 'from', 'sender_chat', 'sender_user', 'user', 'via_bot'].map((name) => [
      name,
      ['id'],
    ]),
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
    const read = name === 'id' ? idOf(kind, given) : field(name, given, depth);
    if (read !== undefined && read !== null) found[name] = read;
  }
  return (ESSENTIAL[kind] ?? []).every((name) => name in found) ? found : undefined;
}

/** A number, except for a button press. */
function idOf(kind: string, value: unknown): unknown {
  return kind === 'callback_query' ? text(value) : whole(value);
}

/** A field that is not read stays unchanged: its name reveals message kinds newer than this code. */
function field(name: string, value: unknown, depth: number): unknown {
  if (TEXTS.has(name)) return text(value);
  if (NUMBERS.has(name)) return whole(value);
  if (FLAGS.has(name)) return value === true;
  const isList = LISTS.has(name);
  if (OBJECTS.has(name) && !(isList && Array.isArray(value))) return object(name, value, depth + 1);
  if (!isList) return value;
  if (!Array.isArray(value)) return undefined;
  const items = value.map((each) => (typeof each === 'number' ? each : object(name, each, depth + 1)));
  return items.filter((each) => each !== undefined);
}

function whole(value: unknown): number | undefined {
  return Number.isSafeInteger(value) ? (value as number) : undefined;
}
