/** Rows of `message`, and of `heard` with them, mapped by hand: a window has hundreds of them. */
import type { StoredMessage } from '../../core/transcript.js';
import type { HeardMessage } from '../../core/view.js';
import { toMessage } from './rows.js';

export const SAID_COLUMNS = `message.id, message.room_id, author_kind, author_id, author_name, administrator, text, sent_at,
  received_at, platform_message_id, mentions_bot, reply_to, edited, turn_id, attachments, quiet`;
export const HEARD_COLUMNS = `heard_after, addressed, ${SAID_COLUMNS}`;

/** In the order of the columns. */
export type SaidRow = [
  id: number,
  roomId: string,
  authorKind: 'person' | 'persona',
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
  quiet: number,
];

export type HeardRow = [heardAfter: number, addressed: number, ...said: SaidRow];

export function toHeard([heardAfter, addressed, ...said]: HeardRow): HeardMessage {
  return asHeard(toSaid(said), heardAfter, addressed === 1);
}

/** Written out: spreading hundreds of messages takes longer than reading them. */
export function asHeard(message: StoredMessage, heardAfter: number, addressed: boolean): HeardMessage {
  const heard: HeardMessage = {
    id: message.id,
    room: message.room,
    author: message.author,
    text: message.text,
    sentAt: message.sentAt,
    receivedAt: message.receivedAt,
    platformMessageId: message.platformMessageId,
    mentionsBot: message.mentionsBot,
    replyTo: message.replyTo,
    edited: message.edited,
    turnId: message.turnId,
    place: { heardAfter, messageId: message.id },
    addressed,
  };
  if (message.attachments !== undefined) heard.attachments = message.attachments;
  if (message.quiet) heard.quiet = true;
  return heard;
}

export function toSaid([
  id,
  roomId,
  authorKind,
  authorId,
  authorName,
  administrator,
  text,
  sentAt,
  receivedAt,
  platformMessageId,
  mentionsBot,
  replyTo,
  edited,
  turnId,
  attachments,
  quiet,
]: SaidRow): StoredMessage {
  return toMessage({
    id,
    roomId,
    authorKind,
    authorId,
    authorName,
    administrator: administrator === 1,
    text,
    sentAt,
    receivedAt,
    platformMessageId,
    mentionsBot: mentionsBot === 1,
    replyTo,
    edited: edited === 1,
    turnId,
    attachments,
    quiet: quiet === 1,
    // Only before it is heard does anybody need these.
    ...{ words: null, addresses: null, bot: false },
  });
}
