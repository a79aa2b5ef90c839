/** What is said, as the content that a phone encrypts; and such a content of ours, as people see it. */

import type { MediaType } from '@whiskeysockets/baileys';
import { normalizeMessageContent, proto } from '@whiskeysockets/baileys';
import { type SealedFile, sealFile } from './whatsapp-files.js';
import type { Enclosure, Saying, SentKind } from './whatsapp-words.js';

/** A message that another may answer. */
export interface Quotable {
  /** The address of who wrote it. */
  author: string;
  content: proto.IMessage;
}

export interface Writing {
  /** What edits of it, votes and the like are encrypted with. */
  secret: Uint8Array;
  /** The album it stands in. */
  album: proto.IMessageKey | null;
  /** Uploads a file; where it lies. */
  put(bytes: Buffer): string;
  quotable(id: string): Quotable | undefined;
  /** Whom `mention` means, as they are addressed in this chat. */
  mentioned: string[];
}

type Said = Omit<Saying, 'from' | 'in'>;

/** The words of it with the mentions before them, as they stand in the message. */
export function wordsOf(text: string, mentioned: string[]): string {
  return [...mentioned.map((jid) => `@${jid.split('@')[0]}`), text].filter(Boolean).join(' ');
}

/** What stands in every message of today's phones, beside what it says. */
export async function contentOf(said: Said, writing: Writing): Promise<proto.IMessage> {
  const { secret, album } = writing;
  const content = said.content ?? (await wordsAndFiles(said, writing));
  const messageContextInfo: proto.IMessageContextInfo = { messageSecret: secret };
  if (album === null)
    return { ...content, messageContextInfo: { ...messageContextInfo, ...content.messageContextInfo } };
  const associationType = proto.MessageAssociation.AssociationType.MEDIA_ALBUM;
  const messageAssociation = { associationType, parentMessageKey: album };
  return { ...content, messageContextInfo: { ...messageContextInfo, messageAssociation } };
}

async function wordsAndFiles(said: Said, writing: Writing): Promise<proto.IMessage> {
  const text = wordsOf(said.text ?? '', writing.mentioned);
  const contextInfo = contextOf(said, writing);
  const below = text === '' ? {} : { caption: text };
  const fileOf = (enclosure: Enclosure, kind: MediaType) => enclose(enclosure, kind, writing);

  if (said.image) return { imageMessage: { ...(await fileOf(said.image, 'image')), ...below, contextInfo } };
  if (said.video) {
    const seconds = said.video.seconds ?? 1;
    return { videoMessage: { ...(await fileOf(said.video, 'video')), ...below, seconds, contextInfo } };
  }
  if (said.voice) {
    const seconds = said.voice.seconds ?? 1;
    return { audioMessage: { ...(await fileOf(said.voice, 'audio')), ptt: true, seconds, contextInfo } };
  }
  if (said.document) {
    const fileName = said.document.fileName ?? 'file';
    const documentMessage = { ...(await fileOf(said.document, 'document')), fileName, ...below, contextInfo };
    // With words below it, phones put it into an envelope.
    return text === ''
      ? { documentMessage }
      : { documentWithCaptionMessage: { message: { documentMessage } } };
  }
  if (said.sticker) return { stickerMessage: { ...(await fileOf(said.sticker, 'sticker')), contextInfo } };
  if (said.location) {
    const { latitude, longitude, ...named } = said.location;
    return {
      locationMessage: { degreesLatitude: latitude, degreesLongitude: longitude, ...named, contextInfo },
    };
  }
  if (said.later) return {};
  return contextInfo === null ? { conversation: text } : { extendedTextMessage: { text, contextInfo } };
}

function contextOf(said: Said, { mentioned, quotable }: Writing): proto.IContextInfo | null {
  const context: proto.IContextInfo = {};
  if (mentioned.length > 0) context.mentionedJid = mentioned;
  if (said.forwarded) Object.assign(context, { isForwarded: true, forwardingScore: 1 });
  if (said.replyTo !== undefined) {
    const quoted = quotable(said.replyTo);
    context.stanzaId = said.replyTo;
    if (quoted !== undefined) {
      context.participant = quoted.author;
      context.quotedMessage = quoted.content;
    }
  }
  return Object.keys(context).length === 0 ? null : context;
}

async function enclose(enclosure: Enclosure, kind: MediaType, { put }: Writing) {
  const { bytes, mediaKey, fileSha256, fileEncSha256 }: SealedFile = await sealFile(enclosure.bytes, kind);
  const directPath = `${put(bytes)}?ccb=11-4`;
  return {
    url: `https://mmg.whatsapp.net${directPath}`,
    directPath,
    mediaKey,
    fileSha256,
    fileEncSha256,
    fileLength: enclosure.claimedSize ?? enclosure.bytes.length,
    mimetype: enclosure.mimeType,
  };
}

/** Where a file of a content lies, and how it is sealed. */
export interface FilePointer {
  kind: MediaType;
  path: string;
  mediaKey: Uint8Array;
  mimeType: string;
  name: string | null;
}

export interface Reading {
  kind: SentKind;
  text: string;
  quotedId: string | null;
  mentioned: string[];
  file: FilePointer | null;
  /** Of a voice note; null for everything else. */
  voiceSeconds: number | null;
}

const VOICE = 'audio/ogg; codecs=opus';

const FILES = [
  ['imageMessage', 'image'],
  ['videoMessage', 'video'],
  ['audioMessage', 'audio'],
  ['documentMessage', 'document'],
  ['stickerMessage', 'sticker'],
] as const;

export function readContent(content: proto.IMessage): Reading {
  const inner = normalizeMessageContent(content) ?? {};
  for (const [field, kind] of FILES) {
    const found = inner[field];
    if (!found) continue;
    const pointer =
      found.directPath && found.mediaKey
        ? {
            kind,
            path: found.directPath,
            mediaKey: found.mediaKey,
            mimeType: found.mimetype ?? '',
            name: ('fileName' in found ? found.fileName : null) ?? null,
          }
        : null;
    const text = ('caption' in found ? found.caption : null) ?? '';
    // Phones play nothing else as a voice note.
    const isVoice =
      'ptt' in found && found.ptt === true && pointer?.mimeType === VOICE && (found.seconds ?? 0) > 0;
    const voiceSeconds = isVoice ? (found.seconds ?? 0) : null;
    return { kind, text, ...contextIn(found.contextInfo), file: pointer, voiceSeconds };
  }
  const text = inner.conversation ?? inner.extendedTextMessage?.text ?? null;
  const context = contextIn(inner.extendedTextMessage?.contextInfo);
  return {
    kind: text === null ? 'other' : 'text',
    text: text ?? '',
    ...context,
    file: null,
    voiceSeconds: null,
  };
}

function contextIn(context: proto.IContextInfo | null | undefined) {
  return { quotedId: context?.stanzaId ?? null, mentioned: context?.mentionedJid ?? [] };
}
