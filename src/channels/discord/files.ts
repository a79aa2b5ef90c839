/** Files of a message in our words. `source` says all it takes to ask for them later, when the link has expired. */
import type { Attachment } from '../../core/message.js';
import { reader, record, text } from '../kit/payload.js';
import { id, type Message } from './payload.js';

/** The message is a voice note. */
const IS_VOICE_MESSAGE = 1 << 13;

type Told = NonNullable<Message['attachments']>[number];

/** Which message a file came with. */
interface Carrier {
  channelId: string;
  messageId: string;
  flags: number;
}

export function attachmentOf(told: Told, { channelId, messageId, flags }: Carrier): Attachment {
  const mimeType = told.content_type?.split(';')[0]?.trim().toLowerCase() || null;
  const source: Source = { channel: channelId, message: messageId, attachment: told.id, url: told.url };
  return {
    kind: kindOf(mimeType, (flags & IS_VOICE_MESSAGE) !== 0),
    source: JSON.stringify(source),
    name: told.filename ?? null,
    mimeType,
    bytes: told.size ?? null,
    seconds: told.duration_secs === undefined ? null : Math.round(told.duration_secs),
  };
}

function kindOf(mimeType: string | null, isVoice: boolean): Attachment['kind'] {
  switch (mimeType?.split('/')[0]) {
    case 'image':
      return 'image';
    case 'audio':
      return isVoice ? 'voice' : 'audio';
    case 'video':
      return 'video';
    default:
      return isVoice ? 'voice' : 'document';
  }
}

export interface Source {
  channel: string;
  message: string;
  attachment: string;
  /** As it was signed last; good for about a day. */
  url: string;
}

const readSource = reader(record({ channel: id, message: id, attachment: id, url: text }, {}));

/** null for what no attachment of ours says. */
export function sourceOf(attachment: Attachment): Source | null {
  try {
    return readSource(JSON.parse(attachment.source)) ?? null;
  } catch {
    return null;
  }
}
