/**
 * What we read of an update. A field of another form than expected counts as absent, and where an essential one is
 * missing the update is nothing to us.
 */
import * as z from 'zod';
import { flag, list, nested, reader, record, text, whole } from '../kit/payload.js';

const user = record({ id: whole }, { is_bot: flag, first_name: text, last_name: text, username: text });
const chat = record(
  { id: whole },
  {
    type: z.enum(['private', 'group', 'supergroup', 'channel']),
    title: text,
    username: text,
    first_name: text,
    last_name: text,
  },
);
const entity = record({ type: text, offset: whole, length: whole }, { user });
const file = { file_id: text, file_unique_id: text, file_size: whole, mime_type: text, file_name: text };
const timed = record({}, { ...file, duration: whole });
const photoSize = record(
  {},
  { file_id: text, file_unique_id: text, file_size: whole, width: whole, height: whole },
);

/** What a message shows: its words, a file, or one other thing. */
const content = {
  text,
  caption: text,
  entities: list(entity),
  caption_entities: list(entity),
  photo: list(photoSize),
  voice: timed,
  video: timed,
  video_note: timed,
  animation: timed,
  audio: record({}, { ...file, duration: whole, title: text, performer: text }),
  document: record({}, file),
  sticker: record({}, { emoji: text }),
  venue: record({}, { title: text, address: text }),
  location: nested,
  contact: record({}, { first_name: text, last_name: text, phone_number: text }),
  poll: record({}, { question: text }),
  dice: record({}, { emoji: text, value: whole }),
  game: record({}, { title: text }),
  story: nested,
  paid_media: nested,
};

const author = { from: user, sender_chat: chat, author_signature: text };

const message = record(
  { message_id: whole, chat },
  {
    date: whole,
    ...author,
    ...content,
    edit_date: whole,
    message_thread_id: whole,
    is_topic_message: flag,
    reply_to_message: record(
      { message_id: whole },
      { date: whole, ...author, ...content, forum_topic_created: nested },
    ),
    quote: record({ text }, {}),
    migrate_to_chat_id: whole,
    migrate_from_chat_id: whole,
  },
);

/** Somebody pressed the button that ends the writing of a draft. */
const stopped = record({ chat }, { message_thread_id: whole });

const reactions = list(record({ type: text }, { emoji: text }));
/** Somebody has changed their reactions to a message. */
const reaction = record(
  { chat, message_id: whole },
  { user, actor_chat: chat, date: whole, old_reaction: reactions, new_reaction: reactions },
);

/** Somebody pressed a button below a message of ours, which may be too old to be shown. */
const press = record(
  { id: text, from: user },
  {
    data: text,
    message: record({ message_id: whole, chat }, { message_thread_id: whole, is_topic_message: flag }),
  },
);

/** Updates of unknown kinds have none of these fields. */
export const readUpdate = reader(
  record(
    {},
    {
      update_id: whole,
      message,
      edited_message: message,
      message_reaction: reaction,
      stopped_message_generation: stopped,
      callback_query: press,
    },
  ),
);

export type Message = z.output<typeof message>;
export type Author = Pick<Message, keyof typeof author>;
export type Content = Pick<Message, keyof typeof content>;
export type Stopped = z.output<typeof stopped>;
export type Press = z.output<typeof press>;
export type Reaction = z.output<typeof reaction>;
export type User = z.output<typeof user>;

/** The kinds of updates we ask Telegram for. */
export const ALLOWED_UPDATES = [
  'message',
  'edited_message',
  'message_reaction',
  'stopped_message_generation',
  'callback_query',
] as const;
