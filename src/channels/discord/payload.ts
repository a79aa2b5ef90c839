/**
 * What we read of Discord's payloads, and nothing else of them. They come from outside: a field of another form than
 * expected counts as absent, and where an essential one is missing the payload is nothing to us.
 */
import {
  anything,
  decimal,
  flag,
  list,
  matching,
  type Read,
  type Reader,
  record,
  text,
  whole,
} from '../kit/payload.js';

/** A snowflake: an id that grows with time. */
export const id = matching(/^\d{1,20}$/);
/** A set of permissions: a number too large for JSON, as text. */
const digits = matching(/^\d{1,40}$/);
const bits: Reader<bigint> = (value) => {
  const found = digits(value);
  return found === undefined ? undefined : BigInt(found);
};

const userFields = { username: text, global_name: text, bot: flag };
const user = record({ id }, userFields);
const memberFields = { nick: text, roles: list(id), permissions: bits };
const member = record({}, { ...memberFields, user });
const attachment = record(
  { id, url: text },
  { filename: text, content_type: text, size: whole, duration_secs: decimal },
);
/** What a message shows. */
const content = {
  content: text,
  attachments: list(attachment),
  sticker_items: list(record({}, { name: text })),
  poll: record(
    {},
    {
      question: record({}, { text }),
      answers: list(record({}, { poll_media: record({}, { text }) })),
    },
  ),
  embeds: list(record({}, { type: text, title: text, description: text })),
  mentions: list(record({ id }, { ...userFields, member })),
  mention_roles: list(id),
  flags: whole,
  /** Of any depth: read where they are shown. */
  components: list(anything),
};
const forwarded = {
  message_reference: record({}, { message_id: id, channel_id: id, type: whole }),
  message_snapshots: list(record({ message: record({}, content) }, {})),
};
const message = record(
  { id, channel_id: id },
  {
    ...content,
    guild_id: id,
    author: user,
    member,
    type: whole,
    webhook_id: id,
    application_id: id,
    timestamp: text,
    edited_timestamp: text,
    ...forwarded,
    referenced_message: record(
      { id },
      { ...content, ...forwarded, author: user, webhook_id: id, application_id: id },
    ),
  },
);
/** One of ours in the history of a channel. */
const sent = record(
  { id, author: user },
  {
    content: text,
    flags: whole,
    webhook_id: id,
    application_id: id,
    attachments: list(record({}, { size: whole })),
  },
);
/** Any of Discord's answers that is a message. */
const answer = record({ id }, { content: text, channel_id: id });

/** `/persona switch NAME` is an option of type 1 with one of type 3 in it. */
const value: Reader<string | number | boolean> = (given) => text(given) ?? decimal(given) ?? flag(given);
const option = record({ name: text }, { value, focused: flag });
const options = list(record({ name: text }, { value, focused: flag, options: list(option) }));
const channelFields = { type: whole, name: text, guild_id: id, parent_id: id, last_message_id: id };
const interaction = record(
  { id, token: text, application_id: id, channel_id: id, type: whole },
  {
    guild_id: id,
    user,
    member,
    attachment_size_limit: whole,
    channel: record({}, channelFields),
    data: record({ name: text }, { options }),
  },
);

/** A button below a message of ours was pressed. */
const press = record(
  { id, token: text, application_id: id, channel_id: id, type: whole, data: record({ custom_id: text }, {}) },
  { guild_id: id, user, member, channel: record({}, channelFields) },
);

const channel = record({ id }, channelFields);
const role = record({ id }, { name: text, permissions: bits, tags: record({}, { bot_id: id }) });
const guildFields = { name: text, owner_id: id, unavailable: flag, premium_tier: whole };
const guild = record(
  { id },
  {
    ...guildFields,
    roles: list(role),
    channels: list(channel),
    threads: list(channel),
    members: list(record({ user }, memberFields)),
  },
);
const application = record({ id }, { flags: whole });
const sessionLimit = record({}, { remaining: whole });

/** Each by its name. */
export const read = {
  user,
  member,
  message,
  sent,
  answer,
  interaction,
  press,
  channel,
  /** A member of a guild, as it is told with every change. */
  memberChange: record({ guild_id: id, user }, memberFields),
  guild,
  application,
  webhook: record({ id }, { type: whole, token: text, application_id: id, user }),
  /** A message of ours, as the gateway brings it when it was sent. */
  echo: record({ id, channel_id: id }, { nonce: text }),
  /** Where anything happened. */
  where: record({ channel_id: id }, { guild_id: id }),
  deletion: record({ channel_id: id }, { id, ids: list(id), guild_id: id }),
  /** One of Discord's own emoji has no id. */
  reaction: record(
    { user_id: id, channel_id: id, message_id: id, emoji: record({}, { id, name: text }) },
    { guild_id: id, member, message_author_id: id },
  ),
  ready: record({ user }, { guilds: list(record({ id }, {})), application }),
  roleChange: record({ guild_id: id }, { role, role_id: id }),
  threads: record({ guild_id: id }, { threads: list(channel) }),
  /** What is said of an interaction's first answer. */
  callback: record({}, { resource: record({}, { message: answer }) }),
  gateway: record({}, { url: text, session_start_limit: sessionLimit }),
};

export type Message = Read<typeof message>;
export type Content = Pick<Message, keyof typeof content>;
/** A message, or one that is answered: perhaps it only passes on another one. */
export type Shown = Content & Pick<Message, keyof typeof forwarded>;
export type Interaction = Read<typeof interaction>;
export type Press = Read<typeof press>;
export type User = Read<typeof user>;
export type ChannelPayload = Read<typeof channel>;
export type GuildPayload = Read<typeof guild>;
export type Sent = Read<typeof sent>;
