/**
 * Step 1 of the route: files of a message that somebody replies to may have been fetched already, with that message.
 * To be called within a transaction.
 */
import type { StoredAttachment } from '../../core/media.js';
import type { Attachment } from '../../core/message.js';
import type { Connection } from './connection.js';
import { IS_MESSAGE } from './transcript.js';

/** The message replied to, in the same chat. */
export interface RepliedTo {
  chatId: string;
  account: string;
  moves: number;
  platformMessageId: string;
}

export function knownFilesOf({ raw }: Connection) {
  const find = raw
    .prepare<[object], string | null>(`
      select attachments from message
      where ${IS_MESSAGE} and edited = 0 and platform_message_id is not null
        -- The files of what a reset has forgotten go by night.
        and id > coalesce((select max(reset_at) from view where view.room_id = message.room_id), 0)`)
    .pluck();

  /** The same attachments; what came of a file that the message replied to holds, too, comes with it. */
  return function withKnown(attachments: Attachment[], message: RepliedTo): StoredAttachment[] {
    if (!attachments.some(({ ofReply }) => ofReply)) return attachments;
    const known: StoredAttachment[] = JSON.parse(find.get(message) ?? '[]');
    return attachments.map((each) => {
      const outcome = each.ofReply && known.find(({ source }) => source === each.source)?.outcome;
      return outcome?.kind === 'kept' ? { ...each, outcome } : each;
    });
  };
}
