/**
 * What we read of Discord's payloads, and nothing else of them. They come from outside: a field of another form than
 * expected counts as absent, and where an essential one is missing the payload is nothing to us.
 */
import * as z from 'zod';
import { flag, list, reader, record, text, whole } from '../kit/payload.js';

/** A snowflake: an id that grows with time. */
export const id = z.string().regex(/^\d{1,20}$/);

const number = z.number();

/** A set of permissions: a number too large for JSON, as text. */
const bits = z
  .string()
  .regex(/^\d{1,40}$/)
  .transform(BigInt);

const userFields = { username: text, global_name: text, bot: flag };
const user = record({ id }, userFields);
const memberFields = { nick: text, roles: list(id), permissions: bits };
const member = record({}, { ...memberFields, user });

const attachment = record(
  { id, url: text },
  { filename: text, content_type: text, size: whole, duration_secs: number },
);

/** What a message shows. */
const content = {
  content: text,
  attachments: list(attachment),
  sticker_items: list(record({}, { name: text })),
  poll: record({}, { question: record({}, { text }) }),
  embeds: list(record({}, { type: text, title: text, description: text })),
  mentions: list(record({ id }, { ...userFields, member })),
  mention_roles: list(id),
  flags: whole,
};

const readMessage = record(
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
    message_reference: record({}, { message_id: id, type: whole }),
    referenced_message: record({ id }, { ...content, author: user, webhook_id: id, application_id: id }),
    message_snapshots: list(record({ message: record({}, content) }, {})),
  },
);

/** One of ours in the history of a channel. */
const readSent = record(
  { id, author: user },
  {
    content: text,
    flags: whole,
    webhook_id: id,
    application_id: id,
    attachments: list(record({}, { filename: text, size: whole })),
    interaction_metadata: record({}, { id }),
  },
);

const readWebhook = record({ id }, { type: whole, token: text, application_id: id, user });

/** The same, as the gateway brings it when it was sent. */
const readEcho = record({ id, channel_id: id }, { nonce: text });

/** Where anything happened. */
const readWhere = record({ channel_id: id }, { guild_id: id });
const readDeletion = record({ channel_id: id }, { id, ids: list(id), guild_id: id });

/** One of Discord's own emoji has no id. */
const readReaction = record(
  { user_id: id, channel_id: id, message_id: id, emoji: record({}, { id, name: text }) },
  { guild_id: id, member, message_author_id: id },
);

/** `/persona switch NAME` is an option of type 1 with one of type 3 in it. */
const value = z.union([text, number, flag]);
const option = record({ name: text }, { value, focused: flag });
const channelFields = {
  type: whole,
  name: text,
  guild_id: id,
  parent_id: id,
  last_message_id: id,
};

const readInteraction = record(
  { id, token: text, application_id: id, channel_id: id, type: whole },
  {
    guild_id: id,
    user,
    member,
    channel: record({}, channelFields),
    data: record(
      { name: text },
      { options: list(record({ name: text }, { value, focused: flag, options: list(option) })) },
    ),
  },
);

const readChannel = record({ id }, channelFields);
const role = record({ id }, { name: text, permissions: bits, tags: record({}, { bot_id: id }) });
const readGuild = record(
  { id },
  {
    name: text,
    owner_id: id,
    unavailable: flag,
    roles: list(role),
    channels: list(readChannel),
    threads: list(readChannel),
  },
);

const readReady = record(
  { user },
  { guilds: list(record({ id }, {})), application: record({ id }, { flags: whole }) },
);

const readRoleChange = record({ guild_id: id }, { role, role_id: id });
const readThreads = record({ guild_id: id }, { threads: list(readChannel) });

/** Any of Discord's answers that is a message. */
const readAnswer = record({ id }, { flags: whole, content: text, channel_id: id });
/** What it says of an interaction's first answer. */
const readCallback = record({}, { resource: record({}, { message: readAnswer }) });
const readMember = record({}, memberFields);
const readApplication = record({ id }, { flags: whole });
const readGateway = record(
  {},
  { url: text, session_start_limit: record({}, { remaining: whole, total: whole }) },
);

export const read = {
  message: reader(readMessage),
  sent: reader(readSent),
  webhook: reader(readWebhook),
  echo: reader(readEcho),
  where: reader(readWhere),
  deletion: reader(readDeletion),
  reaction: reader(readReaction),
  interaction: reader(readInteraction),
  channel: reader(readChannel),
  guild: reader(readGuild),
  ready: reader(readReady),
  roleChange: reader(readRoleChange),
  threads: reader(readThreads),
  user: reader(user),
  member: reader(readMember),
  answer: reader(readAnswer),
  callback: reader(readCallback),
  application: reader(readApplication),
  gateway: reader(readGateway),
};

export type Message = z.output<typeof readMessage>;
export type Content = Pick<Message, keyof typeof content>;
export type Interaction = z.output<typeof readInteraction>;
export type User = z.output<typeof user>;
export type ChannelPayload = z.output<typeof readChannel>;
export type GuildPayload = z.output<typeof readGuild>;
export type Sent = z.output<typeof readSent>;
