/**
 * What is needed to fetch a file of a message later, also after a restart: where it is, its key, and the message by which
 * it can be asked for again when it is gone. Opaque to everybody else.
 */
import type { MediaType } from '@whiskeysockets/baileys';
import { flag, oneOf, type Read, record, text } from '../kit/payload.js';
import type { File } from './content.js';
import { isGroup, plainJid } from './jid.js';
import type { Envelope, Media } from './payload.js';

/** The names with which WhatsApp derives the keys of files. */
const MEDIA_TYPES = {
  image: 'image',
  voice: 'audio',
  audio: 'audio',
  video: 'video',
  document: 'document',
} as const satisfies Record<File['kind'], MediaType>;

const readFields = record(
  {
    type: oneOf('image', 'audio', 'video', 'document'),
    key: text,
    message: record({ remoteJid: text, id: text }, { fromMe: flag, participant: text }),
  },
  { path: text, url: text, sha256: text },
);

export type Source = Read<typeof readFields>;

export function sourceOf(
  kind: File['kind'],
  media: Media,
  { remoteJid, id, fromMe, participant }: Envelope['key'],
) {
  // The same in whatever message it stands: of a quote, too, where who said it has no device, and is named in direct chats.
  const author = isGroup(remoteJid) ? plainJid(participant) : null;
  return JSON.stringify({
    type: MEDIA_TYPES[kind],
    key: base64(media.mediaKey),
    path: media.directPath,
    url: media.url,
    sha256: media.fileSha256 && base64(media.fileSha256),
    message: { remoteJid, id, fromMe, ...(author === null ? {} : { participant: author }) },
  });
}

/** null for what this program did not write. */
export function readSource(written: string): Source | null {
  try {
    return readFields(JSON.parse(written)) ?? null;
  } catch {
    return null;
  }
}

function base64(bytes: Uint8Array | undefined): string {
  return Buffer.from(bytes ?? []).toString('base64');
}
