/**
 * A message's content as words and files; what is neither becomes a label in brackets. Pure, and total: whatever the
 * content holds, nothing throws.
 */
import { normalizeMessageContent, proto } from '@whiskeysockets/baileys';
import { bracketed as inBrackets } from '../kit/incoming.js';
import {
  type Contact,
  type Content,
  type Context,
  type Media,
  type Place,
  READ_KINDS,
  readContent,
} from './payload.js';

const { AssociationType } = proto.MessageAssociation;
const { MEDIA_ALBUM } = AssociationType;
const SECOND_FILES: ReadonlySet<number> = new Set([
  AssociationType.HD_VIDEO_DUAL_UPLOAD,
  AssociationType.HD_IMAGE_DUAL_UPLOAD,
  AssociationType.HEVC_VIDEO_DUAL_UPLOAD,
  AssociationType.MOTION_PHOTO,
]);

/** Kinds of content that stand in no chat, or change what stands there. */
const UNSEEN_KINDS: ReadonlySet<string> = new Set([
  'albumMessage',
  'bcallMessage',
  'botInvokeMessage',
  'botTaskMessage',
  'call',
  'callLogMesssage',
  'chat',
  'deviceSentMessage',
  'encCommentMessage',
  'encEventResponseMessage',
  'encReactionMessage',
  'eventCoverImage',
  'fastRatchetKeySenderKeyDistributionMessage',
  'groupStatusMentionMessage',
  'keepInChatMessage',
  'limitSharingMessage',
  'messageHistoryBundle',
  'messageHistoryNotice',
  'pinInChatMessage',
  'placeholderMessage',
  'pollCreationOptionImageMessage',
  'pollUpdateMessage',
  'scheduledCallEditMessage',
  'senderKeyDistributionMessage',
  'statusAddYours',
  'statusMentionMessage',
  'statusNotificationMessage',
  'statusQuestionAnswerMessage',
  'statusQuotedMessage',
  'statusStickerInteractionMessage',
  'stickerSyncRmrMessage',
]);

/** Kinds of which no more is told than what they are. */
const OTHERS: Record<string, string> = {
  cancelPaymentRequestMessage: 'payment request, cancelled',
  commentMessage: 'comment',
  declinePaymentRequestMessage: 'payment request, declined',
  highlyStructuredMessage: 'message of a business',
  invoiceMessage: 'invoice',
  newsletterAdminInviteMessage: 'invitation to a channel',
  newsletterFollowerInviteMessageV2: 'invitation to a channel',
  paymentInviteMessage: 'invitation to payments',
  pollResultSnapshotMessage: 'result of a poll',
  pollResultSnapshotMessageV3: 'result of a poll',
  requestPaymentMessage: 'payment request',
  requestPhoneNumberMessage: 'request for the phone number',
  scheduledCallCreationMessage: 'planned call',
  sendPaymentMessage: 'payment',
  stickerPackMessage: 'pack of stickers',
};
/** So that whoever wrote it is not left without any answer. */
const UNKNOWN = 'message of a kind that I cannot read';
/** Linked devices are told only that there is something. */
const VIEW_ONCE = '[message to be viewed once: only the phone can open it]';

export interface Said {
  words: string;
  files: File[];
  context: Context;
}

export interface File {
  kind: 'image' | 'voice' | 'audio' | 'video' | 'document';
  media: Media;
}

/** What somebody said, and what there is beside it; `other` names a kind of content that is not read. */
export type Whole = Content & { other?: string };

/** The content, without the wrappers that make it disappear or be seen only once. null where there is none. */
export function contentOf(message: unknown): Whole | null {
  if (typeof message !== 'object' || message === null) return null;
  const outside = readContent(message)?.messageContextInfo;
  const content = unwrapped(message);
  const wrapped =
    content?.groupMentionedMessage ??
    content?.botForwardedMessage ??
    content?.questionMessage ??
    content?.pollCreationMessageV4;
  const inside = wrapped ? unwrapped(wrapped.message) : content;
  return inside && { ...inside, messageContextInfo: inside.messageContextInfo ?? outside };
}

function unwrapped(message: object): Whole | null {
  const inner = normalizeMessageContent(message);
  const content = readContent(inner);
  if (content === undefined) return null;
  const other = Object.entries(inner ?? {}).find(
    ([kind, value]) => value && !READ_KINDS.has(kind) && !UNSEEN_KINDS.has(kind),
  );
  return other === undefined ? content : { ...content, other: other[0] };
}

/** null for what nobody sees: reactions, votes, calls, messages between devices. */
export function saidIn(content: Whole): Said | null {
  const file = fileIn(content);
  const words = file === null ? wordsOf(content) : (file.media.caption ?? '');
  if (file === null && words.trim() === '') return null;
  return { words, files: file === null ? [] : [file], context: contextOf(content) };
}

/** The id of the message that announced the album of this one; null if it stands in none. */
export function albumOf({ messageContextInfo }: Content): string | null {
  const { associationType, parentMessageKey } = messageContextInfo?.messageAssociation ?? {};
  return associationType === MEDIA_ALBUM ? (parentMessageKey?.id ?? null) : null;
}

/** A second file of a message that is there already: the same picture or film in a better form. */
export function isSecondFile({ messageContextInfo }: Content): boolean {
  return SECOND_FILES.has(messageContextInfo?.messageAssociation?.associationType ?? 0);
}

/** For a quotation: its words, else a label. */
export function labelOf(content: Whole): string {
  const said = saidIn(content);
  if (said === null) return '';
  const [file] = said.files;
  return said.words || (file === undefined ? '' : `[${file.kind === 'voice' ? 'voice message' : file.kind}]`);
}

function fileIn(content: Content): File | null {
  const file = anyFileIn(content);
  return file !== null && isWithheld(file.media) ? null : file;
}

function isWithheld({ viewOnce, mediaKey }: Media): boolean {
  return viewOnce === true && mediaKey === undefined;
}

function anyFileIn(content: Content): File | null {
  const { imageMessage, videoMessage, ptvMessage, audioMessage, documentMessage } = content;
  const video = videoMessage ?? ptvMessage;
  if (imageMessage) return { kind: 'image', media: imageMessage };
  if (video) return { kind: 'video', media: video };
  if (audioMessage) return { kind: audioMessage.ptt ? 'voice' : 'audio', media: audioMessage };
  if (documentMessage) return { kind: 'document', media: documentMessage };
  return null;
}

function wordsOf(content: Whole): string {
  const { conversation, extendedTextMessage, other } = content;
  const words = conversation || extendedTextMessage?.text || answerIn(content) || thingIn(content);
  if (words || other === undefined) return words;
  return bracketed(OTHERS[other] ?? UNKNOWN, undefined);
}

/** Whether somebody chose it among what another account offered: then it is that account's words. */
export function isChosen(content: Content): boolean {
  const { buttonsResponseMessage, templateButtonReplyMessage, listResponseMessage } = content;
  return Boolean(
    buttonsResponseMessage ??
      templateButtonReplyMessage ??
      listResponseMessage ??
      content.interactiveResponseMessage,
  );
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
  if (anyFileIn(content) !== null) return VIEW_ONCE;
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
  return inBrackets(details ? `${what}: ${details}` : what);
}

function placeIn(what: string, place: Place): string {
  const { name, address, caption, degreesLatitude, degreesLongitude } = place;
  const at = degreesLatitude === undefined || degreesLongitude === undefined;
  const where = at ? '' : `${degreesLatitude}, ${degreesLongitude}`;
  return bracketed(what, [name, address, caption, where].filter(Boolean).join(', '));
}

function contactIn({ displayName, vcard = '' }: Contact): string {
  return [displayName, ...numbersIn(vcard)].filter(Boolean).join(', ');
}

const MOST_NUMBERS = 5;

/** `item1.TEL;waid=4917…:+49 17…`: a property, its parameters, and behind the colon what it is (RFC 6350). */
function numbersIn(vcard: string): string[] {
  const numbers: string[] = [];
  for (const line of vcard.split('\n')) {
    const colon = line.indexOf(':');
    if (colon < 0 || !/\bTEL\b/i.test(line.slice(0, colon))) continue;
    numbers.push(line.slice(colon + 1).trim());
    if (numbers.length === MOST_NUMBERS) break;
  }
  return numbers;
}

/** Every kind of content may have one. */
function contextOf(content: Content): Context {
  for (const part of Object.values(content)) {
    if (typeof part === 'object' && 'contextInfo' in part && part.contextInfo) return part.contextInfo;
  }
  return {};
}
