/**
 * What we read of an update. A field of another form than expected counts as absent, and where an essential one is
 * missing the update is nothing to us.
 */
import {
  decimal,
  flag,
  list,
  naming,
  nested,
  oneOf,
  type Read,
  record,
  text,
  whole,
} from '../kit/payload.js';

const user = record({ id: whole }, { is_bot: flag, first_name: text, last_name: text, username: text });
const chat = record(
  { id: whole },
  {
    type: oneOf('private', 'group', 'supergroup', 'channel'),
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

/** Where somebody is, or a place on the map; with `live_period`, wherever they go. */
const place = record({}, { latitude: decimal, longitude: decimal, live_period: whole });
const task = record({ text }, { id: whole, completion_date: whole });
const checklist = record({}, { title: text, tasks: list(task) });
const aboutChecklist = { checklist_message: record({}, { checklist }) };

/** What has a file. */
const files = {
  photo: list(photoSize),
  live_photo: record({}, { ...file, duration: whole, photo: list(photoSize) }),
  voice: timed,
  video: timed,
  video_note: timed,
  animation: timed,
  audio: record({}, { ...file, duration: whole, title: text, performer: text }),
  document: record({}, file),
};

/** What a message shows: its words, files, or one other thing. */
const content = {
  text,
  caption: text,
  entities: list(entity),
  caption_entities: list(entity),
  /** Instead of a text; its blocks are read in `rich.ts`. */
  rich_message: record({}, { blocks: nested }),
  ...files,
  paid_media: record({}, { star_count: whole, paid_media: list(record({}, files)) }),
  sticker: record({}, { emoji: text }),
  venue: record({}, { title: text, address: text, location: place }),
  location: place,
  contact: record({}, { first_name: text, last_name: text, phone_number: text }),
  poll: record({}, { question: text, options: list(record({ text }, { persistent_id: text })) }),
  checklist,
  checklist_tasks_done: record(
    {},
    { ...aboutChecklist, marked_as_done_task_ids: list(whole), marked_as_not_done_task_ids: list(whole) },
  ),
  checklist_tasks_added: record({}, { ...aboutChecklist, tasks: list(task) }),
  dice: record({}, { emoji: text, value: whole }),
  game: record({}, { title: text }),
  story: record({}, { chat }),
  gift: record({}, { gift: record({}, { sticker: record({}, { emoji: text }) }), text }),
  unique_gift: record({}, { gift: record({}, { base_name: text, number: whole }), text }),
  giveaway: record({}, { winner_count: whole, prize_description: text }),
  giveaway_winners: record({}, { winner_count: whole, prize_description: text }),
  invoice: record({}, { title: text }),
  /** The names of its fields (`naming`), which tell of kinds that came after this was written. */
  holds: list(text),
};

/** Where the words of a forward, or of a message in another chat, come from: one of these, by its kind. */
const origin = record({}, { sender_user: user, sender_user_name: text, sender_chat: chat, chat });

const author = { from: user, sender_chat: chat, author_signature: text };

const message = naming(
  record(
    { message_id: whole, chat },
    {
      date: whole,
      ...author,
      ...content,
      edit_date: whole,
      media_group_id: text,
      forward_origin: origin,
      via_bot: user,
      is_automatic_forward: flag,
      message_thread_id: whole,
      is_topic_message: flag,
      reply_to_message: naming(
        record(
          { message_id: whole },
          {
            date: whole,
            ...author,
            ...content,
            forward_origin: origin,
            via_bot: user,
            forum_topic_created: nested,
          },
        ),
      ),
      reply_to_checklist_task_id: whole,
      reply_to_poll_option_id: text,
      external_reply: naming(record({}, { origin, chat, message_id: whole, ...content })),
      quote: record({ text }, { is_manual: flag }),
      migrate_to_chat_id: whole,
      migrate_from_chat_id: whole,
    },
  ),
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
export const readUpdate = record(
  {},
  {
    update_id: whole,
    message,
    edited_message: message,
    message_reaction: reaction,
    stopped_message_generation: stopped,
    callback_query: press,
  },
);

/** A block of a rich message, as far as it has a file. */
export const readBlockFiles = record({}, { ...files, voice_note: timed });

/** What files are in, one or several. */
export const FILE_FIELDS: readonly string[] = [...Object.keys(files), 'paid_media', 'rich_message'];

export type Message = Read<typeof message>;
export type Author = Pick<Message, keyof typeof author>;
export type Content = Pick<Message, keyof typeof content>;
export type Files = Pick<Message, keyof typeof files>;
export type Origin = Read<typeof origin>;
export type Stopped = Read<typeof stopped>;
export type Press = Read<typeof press>;
export type Reaction = Read<typeof reaction>;

/** The kinds of updates we ask Telegram for. */
export const ALLOWED_UPDATES = [
  'message',
  'edited_message',
  'message_reaction',
  'stopped_message_generation',
  'callback_query',
] as const;
