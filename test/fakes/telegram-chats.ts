/** What people do on the fake Telegram, as the updates that a bot gets of it. */
import type { Payload } from './telegram-body.js';
import type { FakeBot } from './telegram-bots.js';

export interface Person {
  id: number;
  first_name: string;
  last_name?: string;
  username?: string;
  is_bot?: boolean;
}

export interface Chat {
  id: number;
  type: 'private' | 'group' | 'supergroup' | 'channel';
  title?: string;
  first_name?: string;
  username?: string;
  is_forum?: boolean;
}

/** One message of a person. Entities for commands and mentions are found as Telegram finds them. */
export interface Saying {
  /** A private chat with `from` if left out. */
  chat?: Chat;
  from?: Person;
  text?: string;
  caption?: string;
  /** The bot of ours that it is said to in a private chat; the main one if left out. */
  to?: FakeBot;
  /** The id of a message in the same chat, as `to` knows it. */
  replyTo?: number;
  quote?: string;
  /** A topic. */
  topic?: number;
  /** As the group itself: an anonymous administrator. */
  anonymous?: boolean;
  /** Seconds since 1970; now if left out. */
  date?: number;
  messageId?: number;
  /** A message that is forwarded: with its words and files, and whose they are. */
  forwards?: Forwarded;
  /** A message in a chat that the bot may not even be in: Telegram tells where it stands, and shows of it what is quoted. */
  repliesInto?: { origin: Payload; chat?: Chat; messageId?: number; shows?: Payload };
  /** The same for all messages of an album (`album` of the fake gives one). */
  mediaGroup?: string;
  /** A file, which can then be fetched. At most one, as on Telegram: each of an album's has its own message. */
  photo?: SaidFile;
  voice?: SaidFile;
  document?: SaidFile;
  /** Anything else: `{ sticker: … }`, `{ poll: … }`; `telegram-kinds.ts` has them as the server sends them. */
  extra?: Payload;
}

export type Forwarded =
  /** One that the fake knows. `hides`: its author lets no forward lead to their account. */
  | { chatId: number; messageId: number; hides?: true }
  /** One from a chat that no bot of ours is in: its words are those of the saying. */
  | { origin: Payload };

export interface SaidFile {
  bytes: Buffer;
  mimeType?: string;
  name?: string;
  seconds?: number;
  /** What the message says of its size; the truth if left out. */
  claimed?: number;
}

/** A message as one bot gets it. */
export interface Copy {
  bot: FakeBot;
  updateId: number;
  messageId: number;
  message: Payload;
}

/** As the first bot that is there got it, and as all of them did. */
export interface Said extends Omit<Copy, 'bot'> {
  chatId: number;
  copies: Copy[];
}

export const ANNA: Person = { id: 100001, first_name: 'Anna', last_name: 'Berg', username: 'annaberg' };

const ANONYMOUS: Person = {
  id: 1087968824,
  is_bot: true,
  first_name: 'Group',
  username: 'GroupAnonymousBot',
};

function privateChat(person: Person): Chat {
  const { id, first_name, username } = person;
  return { id, type: 'private', first_name, ...(username === undefined ? {} : { username }) };
}

export function chatOf({ from = ANNA, chat = privateChat(from) }: Pick<Saying, 'chat' | 'from'>): Chat {
  return chat;
}

/** A group in which every bot calls a message by a number of its own. */
export function basicGroup(id: number, title = 'A basic group'): Chat {
  return { id, type: 'group', title };
}

export function group(id: number, title = 'A group'): Chat {
  return { id, type: 'supergroup', title };
}

export function messageOf(saying: Saying, messageId: number, repliedTo: Payload | undefined): Payload {
  const { from = ANNA, chat = privateChat(from), text, caption, topic, anonymous, quote } = saying;
  const { reply_to_message: _inner, ...replied } = repliedTo ?? {};
  return {
    message_id: messageId,
    from: anonymous ? ANONYMOUS : { is_bot: false, ...from },
    ...(anonymous ? { sender_chat: chat } : {}),
    chat,
    date: saying.date ?? Math.floor(Date.now() / 1000),
    ...(topic === undefined ? {} : { message_thread_id: topic, is_topic_message: true }),
    ...(repliedTo === undefined ? {} : { reply_to_message: replied }),
    ...(quote === undefined ? {} : { quote: { text: quote, position: 0, is_manual: true } }),
    ...(saying.mediaGroup === undefined ? {} : { media_group_id: saying.mediaGroup }),
    ...(saying.repliesInto === undefined ? {} : { external_reply: externalReply(saying.repliesInto) }),
    ...(text === undefined ? {} : withEntities('text', 'entities', text)),
    ...(caption === undefined ? {} : withEntities('caption', 'caption_entities', caption)),
    ...saying.extra,
  };
}

/** `ExternalReplyInfo`: the chat and the number are told of supergroups and channels alone. */
function externalReply({ origin, chat, messageId, shows }: NonNullable<Saying['repliesInto']>): Payload {
  const isTold = chat?.type === 'supergroup' || chat?.type === 'channel';
  return { origin, ...(isTold ? { chat, message_id: messageId } : {}), ...shows };
}

function withEntities(field: string, entitiesField: string, text: string): Payload {
  const entities = [...text.matchAll(/(?<![\w/])\/\w{1,32}(?:@\w+)?|(?<![\w@/])@\w{3,32}/g)].map((match) => ({
    type: match[0].startsWith('/') ? 'bot_command' : 'mention',
    offset: match.index,
    length: match[0].length,
  }));
  return { [field]: text, ...(entities.length > 0 ? { [entitiesField]: entities } : {}) };
}
