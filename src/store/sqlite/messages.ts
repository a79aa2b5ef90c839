/** Maps rows of `message` and `heard` by hand, because a window has hundreds of them. */
import type { StoredMessage } from '../../core/transcript.js';
import type { HeardMessage } from '../../core/view.js';

export const MESSAGE_COLUMNS = `message.id, message.room_id, author_kind, author_id, author_name, administrator, text,
  sent_at, received_at, platform_message_id, mentions_bot, reply_to, edited, turn_id, attachments, words, quiet,
  addresses, bot, reaction`;
export const HEARD_COLUMNS = `heard_after, addressed, ${MESSAGE_COLUMNS}`;

/** In the order of the columns. */
export type MessageRow = [
  id: number,
  roomId: string,
  authorKind: 'person' | 'persona' | 'gateway',
  authorId: string,
  authorName: string,
  administrator: number,
  text: string,
  sentAt: number,
  receivedAt: number,
  platformMessageId: string | null,
  mentionsBot: number,
  replyTo: string | null,
  edited: number,
  turnId: string | null,
  attachments: string | null,
  words: string | null,
  quiet: number,
  addresses: string | null,
  bot: number,
  reaction: number,
];

export type HeardRow = [heardAfter: number, addressed: number, ...message: MessageRow];

export function toMessage(row: MessageRow): StoredMessage {
  const stored: StoredMessage = {
    id: row[0],
    room: row[1],
    author: authorOf(row),
    text: row[6],
    sentAt: row[7],
    receivedAt: row[8],
    platformMessageId: row[9],
    mentionsBot: row[10] === 1,
    replyTo: row[11] === null ? null : JSON.parse(row[11]),
    edited: row[12] === 1,
    turnId: row[13],
  };
  if (row[14] !== null) stored.attachments = JSON.parse(row[14]);
  if (row[15] !== null) stored.words = row[15];
  if (row[16] === 1) stored.quiet = true;
  if (row[17] !== null) stored.addresses = JSON.parse(row[17]);
  if (row[19] === 1) stored.reaction = true;
  return stored;
}

/** Adds to the object instead of spreading it: with hundreds of messages, the copies would take longer than reading. */
export function toHeard([heardAfter, addressed, ...row]: HeardRow): HeardMessage {
  const position = { heardAfter, messageId: row[0] };
  return Object.assign(toMessage(row), { position, addressed: addressed === 1 });
}

function authorOf(row: MessageRow): StoredMessage['author'] {
  const id = row[3];
  if (row[2] === 'persona') return { kind: 'persona', id };
  if (row[2] === 'gateway') return { kind: 'gateway', about: id };
  return row[18] === 1
    ? { kind: 'person', id, name: row[4], administrator: row[5] === 1, bot: true }
    : { kind: 'person', id, name: row[4], administrator: row[5] === 1 };
}
