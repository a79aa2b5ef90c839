/** Rows of `heard` with their messages, mapped by hand: a window has hundreds of them in every turn. */
import type { RoomId } from '../../core/ids.js';
import type { HeardMessage } from '../../core/view.js';
import { toMessage } from './rows.js';

export const HEARD_COLUMNS = `message.id, heard_after, addressed, author_kind, author_id, author_name, administrator, text,
  sent_at, received_at, platform_message_id, mentions_bot, reply_to, edited, turn_id, attachments, quiet`;

/** In the order of the columns. */
export type HeardRow = [
  id: number,
  heardAfter: number,
  addressed: number,
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

export function toHeard(roomId: RoomId): (row: HeardRow) => HeardMessage {
  return ([
    id,
    heardAfter,
    addressed,
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
  ]) => {
    const message = toMessage({
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
    // Assigned, not spread: hundreds of rows in every turn.
    return Object.assign(message, { place: { heardAfter, messageId: id }, addressed: addressed === 1 });
  };
}
