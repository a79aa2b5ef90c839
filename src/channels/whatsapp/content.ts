/**
 * A message's content as words and files; what is neither becomes a label in brackets. Pure, and total: whatever the
 * content holds, nothing throws.
 */
import { normalizeMessageContent } from '@whiskeysockets/baileys';
import { type Contact, type Content, type Context, type Media, type Place, readContent } from './payload.js';

export interface Said {
  words: string;
  files: File[];
  context: Context;
}

export interface File {
  kind: 'image' | 'voice' | 'audio' | 'video' | 'document';
  media: Media;
}

/** The content, without the wrappers that make it disappear or be seen only once. null where there is none. */
export function contentOf(message: unknown): Content | null {
  if (typeof message !== 'object' || message === null) return null;
  const content = readContent(normalizeMessageContent(message)) ?? null;
  const wrapped = content?.groupMentionedMessage ?? content?.botForwardedMessage ?? content?.questionMessage;
  return wrapped ? (readContent(normalizeMessageContent(wrapped.message)) ?? null) : content;
}

/** null for what a persona cannot read: reactions, votes, calls, messages between devices. */
export function saidIn(content: Content): Said | null {
  const file = fileIn(content);
  const words = file === null ? wordsOf(content) : (file.media.caption ?? '');
  if (file === null && words.trim() === '') return null;
  return { words, files: file === null ? [] : [file], context: contextOf(content) };
}

/** For a quotation: its words, else a label. */
export function labelOf(content: Content): string {
  const said = saidIn(content);
  if (said === null) return '';
  const [file] = said.files;
  return said.words || (file === undefined ? '' : `[${file.kind === 'voice' ? 'voice message' : file.kind}]`);
}

function fileIn(content: Content): File | null {
  const { imageMessage, videoMessage, ptvMessage, audioMessage, documentMessage } = content;
  const video = videoMessage ?? ptvMessage;
  if (imageMessage) return { kind: 'image', media: imageMessage };
  if (video) return { kind: 'video', media: video };
  if (audioMessage) return { kind: audioMessage.ptt ? 'voice' : 'audio', media: audioMessage };
  if (documentMessage) return { kind: 'document', media: documentMessage };
  return null;
}

function wordsOf(content: Content): string {
  return content.conversation || content.extendedTextMessage?.text || answerIn(content) || thingIn(content);
}

/** A button or a line of a list that somebody chose, and what a business wrote beside its buttons. */
function answerIn(content: Content): string {
  const { listMessage } = content;
  return (
    content.buttonsResponseMessage?.selectedDisplayText ||
    content.templateButtonReplyMessage?.selectedDisplayText ||
    content.listResponseMessage?.title ||
    content.interactiveResponseMessage?.body?.text ||
    content.buttonsMessage?.contentText ||
    content.templateMessage?.hydratedTemplate?.hydratedContentText ||
    content.interactiveMessage?.body?.text ||
    [listMessage?.title, listMessage?.description].filter(Boolean).join('\n')
  );
}

function thingIn(content: Content): string {
  const { contactMessage, contactsArrayMessage, eventMessage, groupInviteMessage } = content;
  if (content.stickerMessage || content.lottieStickerMessage) return '[sticker]';
  if (content.liveLocationMessage) return placeIn('live location', content.liveLocationMessage);
  if (content.locationMessage) return placeIn('location', content.locationMessage);
  if (contactMessage) return bracketed('contact', contactIn(contactMessage));
  if (contactsArrayMessage) {
    return bracketed('contacts', (contactsArrayMessage.contacts ?? []).map(contactIn).join('; '));
  }
  const poll =
    content.pollCreationMessage ??
    content.pollCreationMessageV2 ??
    content.pollCreationMessageV3 ??
    content.pollCreationMessageV5;
  if (poll) {
    const options = (poll.options ?? []).map(({ optionName }) => optionName).filter(Boolean);
    return bracketed('poll', [poll.name, options.join(' / ')].filter(Boolean).join(' — '));
  }
  if (eventMessage) {
    const { name, description, startTime, location } = eventMessage;
    const when = startTime && startTime < 1e11 ? new Date(startTime * 1000).toISOString() : '';
    return bracketed('event', [name, when, location?.name, description].filter(Boolean).join(', '));
  }
  if (groupInviteMessage) return bracketed('invitation to a group', groupInviteMessage.groupName);
  if (content.productMessage) return bracketed('product', content.productMessage.product?.title);
  if (content.orderMessage) return bracketed('order', content.orderMessage.orderTitle);
  return '';
}

function bracketed(what: string, details: string | undefined): string {
  return details ? `[${what}: ${details}]` : `[${what}]`;
}

function placeIn(what: string, place: Place): string {
  const { name, address, caption, degreesLatitude, degreesLongitude } = place;
  const at = degreesLatitude === undefined || degreesLongitude === undefined;
  const where = at ? '' : `${degreesLatitude}, ${degreesLongitude}`;
  return bracketed(what, [name, address, caption, where].filter(Boolean).join(', '));
}

function contactIn({ displayName, vcard }: Contact): string {
  const numbers = [...(vcard ?? '').matchAll(/^[^\n:]*\bTEL\b[^\n:]*:(.+)$/gim)];
  const listed = numbers.slice(0, 5).map(([, number]) => number?.trim());
  return [displayName, ...listed].filter(Boolean).join(', ');
}

/** Every kind of content may have one. */
function contextOf(content: Content): Context {
  for (const part of Object.values(content)) {
    if (typeof part === 'object' && 'contextInfo' in part && part.contextInfo) return part.contextInfo;
  }
  return {};
}
