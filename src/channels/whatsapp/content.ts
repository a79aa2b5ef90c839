/**
 * What we read of WhatsApp's messages. A field of another form than expected counts as absent.
 */

import { normalizeMessageContent, proto } from '@whiskeysockets/baileys';
import { bracketed as inBrackets } from '../kit/incoming.js';
import { decimal, flag, list, nested, type Read, type Reader, record, text } from '../kit/payload.js';

const bytes: Reader<Uint8Array> = (value) =>
  value instanceof Uint8Array && value.length > 0 ? value : undefined;

/** Whole numbers come as numbers, as text, or as a pair of halves. */
const count: Reader<number> = (value) => {
  const number = numberIn(value);
  return Number.isSafeInteger(number) && (number as number) >= 0 ? (number as number) : undefined;
};

function numberIn(value: unknown): unknown {
  if (typeof value === 'object' && value !== null && 'low' in value && 'high' in value) {
    return Number(value.high) * 2 ** 32 + (Number(value.low) >>> 0);
  }
  return typeof value === 'string' && /^\d{1,16}$/.test(value) ? Number(value) : value;
}

const context = record(
  {},
  {
    stanzaId: text,
    participant: text,
    quotedMessage: nested,
    mentionedJid: list(text),
    expiration: count,
    isForwarded: flag,
    forwardingScore: count,
  },
);

const about = { contextInfo: context };

const media = record(
  {},
  {
    ...about,
    caption: text,
    mimetype: text,
    fileName: text,
    title: text,
    fileLength: count,
    seconds: count,
    ptt: flag,
    viewOnce: flag,
    directPath: text,
    url: text,
    mediaKey: bytes,
    fileSha256: bytes,
  },
);

const place = record(
  {},
  { ...about, degreesLatitude: decimal, degreesLongitude: decimal, name: text, address: text, caption: text },
);
const contact = record({}, { ...about, displayName: text, vcard: text });
const poll = record({}, { ...about, name: text, options: list(record({}, { optionName: text })) });
const messageKey = record({ id: text }, { fromMe: flag, participant: text });
const beside = record(
  {},
  {
    messageSecret: bytes,
    messageAssociation: record({ associationType: count }, { parentMessageKey: messageKey }),
  },
);

// `nested` is read later, with the same reader: messages hold messages.
const kinds = {
  conversation: text,
  extendedTextMessage: record({}, { ...about, text }),
  imageMessage: media,
  videoMessage: media,
  ptvMessage: media,
  audioMessage: media,
  documentMessage: media,
  stickerMessage: record({}, about),
  lottieStickerMessage: record({}, {}),
  // Wrappers that the library does not know.
  groupMentionedMessage: record({ message: nested }, {}),
  botForwardedMessage: record({ message: nested }, {}),
  questionMessage: record({ message: nested }, {}),
  pollCreationMessageV4: record({ message: nested }, {}),
  locationMessage: place,
  liveLocationMessage: place,
  contactMessage: contact,
  contactsArrayMessage: record({}, { ...about, contacts: list(contact) }),
  pollCreationMessage: poll,
  pollCreationMessageV2: poll,
  pollCreationMessageV3: poll,
  pollCreationMessageV5: poll,
  eventMessage: record({}, { ...about, name: text, description: text, startTime: count, location: place }),
  groupInviteMessage: record({}, { ...about, groupName: text, caption: text }),
  productMessage: record({}, { ...about, product: record({}, { title: text }) }),
  orderMessage: record({}, { ...about, orderTitle: text, message: text }),
  buttonsResponseMessage: record({}, { ...about, selectedDisplayText: text }),
  templateButtonReplyMessage: record({}, { ...about, selectedDisplayText: text }),
  listResponseMessage: record({}, { ...about, title: text }),
  interactiveResponseMessage: record({}, { ...about, body: record({}, { text }) }),
  buttonsMessage: record({}, { ...about, contentText: text }),
  templateMessage: record({}, { ...about, hydratedTemplate: record({}, { hydratedContentText: text }) }),
  listMessage: record({}, { ...about, title: text, description: text }),
  interactiveMessage: record({}, { ...about, body: record({}, { text }) }),
  reactionMessage: record({ key: messageKey }, { text, senderTimestampMs: count }),
  messageContextInfo: beside,
  secretEncryptedMessage: record(
    { targetMessageKey: messageKey, encPayload: bytes, encIv: bytes },
    { secretEncType: count },
  ),
  protocolMessage: record({}, { type: count, key: messageKey, editedMessage: nested, timestampMs: count }),
};

const envelope = record(
  {
    key: record(
      { remoteJid: text, id: text },
      { remoteJidAlt: text, fromMe: flag, participant: text, participantAlt: text },
    ),
    message: nested,
  },
  { messageTimestamp: count, pushName: text, verifiedBizName: text },
);

/** A message's content, out of its wrappers. */
export const readContent = record({}, kinds);
/** The kinds of content that are read. */
export const READ_KINDS: ReadonlySet<string> = new Set(Object.keys(kinds));
/** A message with what stands on its envelope. */
export const readMessage = envelope;

export type Content = Read<typeof readContent>;
export type Envelope = Read<typeof envelope>;
export type Media = Read<typeof media>;
export type Place = Read<typeof place>;
export type Contact = Read<typeof contact>;
export type Context = Read<typeof context>;

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
