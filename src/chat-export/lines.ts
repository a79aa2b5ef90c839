/** What an export says of each message, in whatever format. Pure. */

import type { PersonaId } from '../core/ids.js';
import type { StoredAttachment } from '../core/media.js';
import type { StoredMessage } from '../core/transcript.js';

export interface ExportedMessage {
  /** The number by which it is known here, which grows. */
  id: number;
  /** ISO 8601, UTC. */
  at: string;
  author: { kind: 'person' | 'persona'; id: string; name: string; bot?: true };
  /** As it is now; empty for one that is only files. */
  text: string;
  /** It was changed after it had been taken up. */
  edited?: true;
  /** It is a reaction: `text` says with what. */
  reaction?: true;
  /** `told`: only whoever replied says that it was said. */
  reply_to?: { author: string; text: string; told?: true };
  /** Whose words it only forwards; empty if that is not known. */
  forwarded_from?: string;
  files?: ExportedFile[];
}

export interface ExportedFile {
  kind: StoredAttachment['kind'];
  name: string | null;
  mime_type: string | null;
  bytes: number | null;
  /** What was heard in a voice note. */
  spoken?: string;
}

export function exportedMessage(
  message: StoredMessage,
  nameOf: (personaId: PersonaId) => string,
): ExportedMessage {
  const {
    id,
    sentAt,
    author,
    text,
    words,
    edited,
    reaction,
    replyTo,
    forwardedFrom,
    attachments = [],
  } = message;
  const files = attachments.filter(({ ofReply }) => !ofReply).map(fileOf);
  return {
    id,
    at: new Date(sentAt).toISOString(),
    author: authorOf(author, nameOf),
    // Where there are files, `text` also says what is in them.
    text: words ?? text,
    ...(edited && { edited: true }),
    ...(reaction && { reaction: true }),
    ...(replyTo && {
      reply_to: {
        author: replyTo.senderName,
        text: replyTo.text,
        ...(replyTo.told && { told: true as const }),
      },
    }),
    ...(forwardedFrom !== undefined && { forwarded_from: forwardedFrom }),
    ...(files.length > 0 && { files }),
  };
}

function authorOf(
  author: StoredMessage['author'],
  nameOf: (personaId: PersonaId) => string,
): ExportedMessage['author'] {
  if (author.kind === 'persona') return { kind: 'persona', id: author.id, name: nameOf(author.id) };
  if (author.kind === 'gateway') return { kind: 'person', id: '', name: author.about };
  const { id, name, bot } = author;
  return { kind: 'person', id, name, ...(bot && { bot }) };
}

function fileOf({ kind, name, mimeType, bytes, outcome }: StoredAttachment): ExportedFile {
  const spoken = kind === 'voice' && outcome?.kind === 'kept' ? outcome.read : undefined;
  return { kind, name, mime_type: mimeType, bytes, ...(spoken !== undefined && { spoken }) };
}
