/** A message's content as words and files, other content in brackets. Pure, total: nothing throws. */
import { normalizeMessageContent, proto } from '@whiskeysockets/baileys';
import { bracketed, decimal, text } from '../kit/incoming.js';

const { AssociationType } = proto.MessageAssociation;
const SECOND_FILES: ReadonlySet<unknown> = new Set([
  AssociationType.HD_VIDEO_DUAL_UPLOAD,
  AssociationType.HD_IMAGE_DUAL_UPLOAD,
  AssociationType.HEVC_VIDEO_DUAL_UPLOAD,
  AssociationType.MOTION_PHOTO,
]);

export type WhatsAppContent = proto.IMessage;
export type MessageContext = proto.IContextInfo;
/** The fields that all kinds of files share. */
export type MediaMessage = proto.Message.IImageMessage &
  proto.Message.IVideoMessage &
  proto.Message.IAudioMessage &
  proto.Message.IDocumentMessage;

export interface MessageFile {
  kind: 'image' | 'voice' | 'audio' | 'video' | 'document';
  media: MediaMessage;
}

export interface ReadContent {
  words: string;
  files: MessageFile[];
  context: MessageContext;
}

export function bytesIn(value: unknown): Uint8Array | undefined {
  return value instanceof Uint8Array && value.length > 0 ? value : undefined;
}

/** A whole number, given as a number, as text, or as two halves. */
export function countIn(value: unknown): number | undefined {
  let number = value;
  if (typeof value === 'object' && value !== null && 'low' in value && 'high' in value) {
    number = Number(value.high) * 2 ** 32 + (Number(value.low) >>> 0);
  } else if (typeof value === 'string' && /^\d{1,16}$/.test(value)) number = Number(value);
  return Number.isSafeInteger(number) && Number(number) >= 0 ? Number(number) : undefined;
}

type Line = string | null | undefined;
type Kinds = { [Kind in keyof WhatsAppContent]?: (part: NonNullable<WhatsAppContent[Kind]>) => Line };

const KINDS: Kinds = {
  conversation: (words) => words,
  extendedTextMessage: (part) => part.text,
  // Choices among another account's buttons and lines, and the text of a business next to them.
  buttonsResponseMessage: (part) => part.selectedDisplayText,
  templateButtonReplyMessage: (part) => part.selectedDisplayText,
  listResponseMessage: (part) => part.title,
  interactiveResponseMessage: (part) => part.body?.text,
  buttonsMessage: (part) => part.contentText,
  templateMessage: (part) => part.hydratedTemplate?.hydratedContentText,
  interactiveMessage: (part) => part.body?.text,
  listMessage: (part) => [part.title, part.description].map(text).filter(Boolean).join('\n'),
  stickerMessage: () => '[sticker]',
  lottieStickerMessage: () => '[sticker]',
  locationMessage: (part) => placeIn('location', part),
  liveLocationMessage: (part) => placeIn('live location', part),
  contactMessage: (part) => line('contact', contactIn(part)),
  contactsArrayMessage: (part) => line('contacts', listIn(part.contacts).map(contactIn).join('; ')),
  pollCreationMessage: pollIn,
  pollCreationMessageV2: pollIn,
  pollCreationMessageV3: pollIn,
  pollCreationMessageV5: pollIn,
  eventMessage({ name, description, startTime, location }) {
    const seconds = countIn(startTime);
    const when = seconds && seconds < 1e11 ? new Date(seconds * 1000).toISOString() : '';
    return line('event', name, when, location?.name, description);
  },
  groupInviteMessage: (part) => line('invitation to a group', part.groupName),
  productMessage: (part) => line('product', part.product?.title),
  orderMessage: (part) => line('order', part.orderTitle),
  cancelPaymentRequestMessage: () => '[payment request, cancelled]',
  commentMessage: () => '[comment]',
  declinePaymentRequestMessage: () => '[payment request, declined]',
  highlyStructuredMessage: () => '[message of a business]',
  invoiceMessage: () => '[invoice]',
  newsletterAdminInviteMessage: () => '[invitation to a channel]',
  newsletterFollowerInviteMessageV2: () => '[invitation to a channel]',
  paymentInviteMessage: () => '[invitation to payments]',
  pollResultSnapshotMessage: () => '[result of a poll]',
  pollResultSnapshotMessageV3: () => '[result of a poll]',
  requestPaymentMessage: () => '[payment request]',
  requestPhoneNumberMessage: () => '[request for the phone number]',
  scheduledCallCreationMessage: () => '[planned call]',
  sendPaymentMessage: () => '[payment]',
  stickerPackMessage: () => '[pack of stickers]',
};

/** Kinds that no chat shows, that change other messages, or that are handled elsewhere. */
const WITHOUT_WORDS: ReadonlySet<string> = new Set(
  `
  imageMessage videoMessage ptvMessage audioMessage documentMessage groupMentionedMessage
  botForwardedMessage questionMessage pollCreationMessageV4 reactionMessage messageContextInfo
  secretEncryptedMessage protocolMessage albumMessage bcallMessage botInvokeMessage botTaskMessage
  call callLogMesssage chat deviceSentMessage encCommentMessage encEventResponseMessage
  encReactionMessage eventCoverImage fastRatchetKeySenderKeyDistributionMessage
  groupStatusMentionMessage keepInChatMessage limitSharingMessage messageHistoryBundle
  messageHistoryNotice pinInChatMessage placeholderMessage pollCreationOptionImageMessage
  pollUpdateMessage scheduledCallEditMessage senderKeyDistributionMessage statusAddYours
  statusMentionMessage statusNotificationMessage statusQuestionAnswerMessage statusQuotedMessage
  statusStickerInteractionMessage stickerSyncRmrMessage
  `.split(/\s+/),
);

/** Ensures that its sender still gets an answer. */
const UNKNOWN = '[message of a kind that I cannot read]';
/** Linked devices are only told that such a message exists. */
const VIEW_ONCE = '[message to be viewed once: only the phone can open it]';

/** The content without its disappearing and view-once wrappers; null if empty. */
export function contentOf(message: unknown): WhatsAppContent | null {
  const content = unwrapped(message);
  const wrapper =
    content?.groupMentionedMessage ??
    content?.botForwardedMessage ??
    content?.questionMessage ??
    content?.pollCreationMessageV4;
  const inside = wrapper ? unwrapped(wrapper.message) : content;
  if (inside === null) return null;
  const messageContextInfo = inside.messageContextInfo ?? (message as WhatsAppContent).messageContextInfo;
  return messageContextInfo ? { ...inside, messageContextInfo } : inside;
}

function unwrapped(message: unknown): WhatsAppContent | null {
  const inner = isObject(message) ? normalizeMessageContent(message) : null;
  return isObject(inner) ? inner : null;
}

/** null for content that no chat shows: reactions, votes, calls, messages between devices. */
export function saidIn(content: WhatsAppContent): ReadContent | null {
  const file = fileIn(content);
  // A view-once file comes without its key.
  const isWithheld = file?.media.viewOnce === true && bytesIn(file.media.mediaKey) === undefined;
  if (file !== null && !isWithheld) {
    return { words: text(file.media.caption) ?? '', files: [file], context: contextOf(content) };
  }
  const words = wordsIn(content) || (isWithheld ? VIEW_ONCE : '');
  return words.trim() === '' ? null : { words, files: [], context: contextOf(content) };
}

/** Id of the message that announced this one's album; null outside of albums. */
export function albumOf({ messageContextInfo }: WhatsAppContent): string | null {
  const { associationType, parentMessageKey } = messageContextInfo?.messageAssociation ?? {};
  return associationType === AssociationType.MEDIA_ALBUM ? (text(parentMessageKey?.id) ?? null) : null;
}

/** A second file for an earlier message: the same picture or film in better quality. */
export function isSecondFile({ messageContextInfo }: WhatsAppContent): boolean {
  return SECOND_FILES.has(messageContextInfo?.messageAssociation?.associationType);
}

/** For a quotation: its words, else a label. */
export function labelOf(content: WhatsAppContent): string {
  const said = saidIn(content);
  const kind = said?.files[0]?.kind;
  return said?.words || (kind === undefined ? '' : `[${kind === 'voice' ? 'voice message' : kind}]`);
}

/** Whether it was chosen from another account's options: then that account wrote the words. */
export function isChosen(content: WhatsAppContent): boolean {
  return Boolean(
    content.buttonsResponseMessage ??
      content.templateButtonReplyMessage ??
      content.listResponseMessage ??
      content.interactiveResponseMessage,
  );
}

function fileIn(content: WhatsAppContent): MessageFile | null {
  const { imageMessage, videoMessage, ptvMessage, audioMessage, documentMessage } = content;
  const video = videoMessage ?? ptvMessage;
  if (imageMessage) return { kind: 'image', media: imageMessage };
  if (video) return { kind: 'video', media: video };
  if (audioMessage) return { kind: audioMessage.ptt === true ? 'voice' : 'audio', media: audioMessage };
  return documentMessage ? { kind: 'document', media: documentMessage } : null;
}

function wordsIn(content: WhatsAppContent): string {
  for (const [kind, read] of Object.entries(KINDS) as [keyof WhatsAppContent, (part: unknown) => Line][]) {
    const part = content[kind];
    const words = part ? text(read(part)) : '';
    if (words) return words;
  }
  const isKnown = ([kind, part]: [string, unknown]) => !part || kind in KINDS || WITHOUT_WORDS.has(kind);
  return Object.entries(content).every(isKnown) ? '' : UNKNOWN;
}

function line(what: string, ...details: unknown[]): string {
  const told = details.map(text).filter(Boolean).join(', ');
  return bracketed(told === '' ? what : `${what}: ${told}`);
}

function placeIn(what: string, place: proto.Message.ILocationMessage & proto.Message.ILiveLocationMessage) {
  const [latitude, longitude] = [place.degreesLatitude, place.degreesLongitude].map(decimal);
  const isKnown = latitude !== undefined && longitude !== undefined;
  return line(what, place.name, place.address, place.caption, isKnown ? `${latitude}, ${longitude}` : '');
}

function pollIn({ name, options }: proto.Message.IPollCreationMessage): string {
  const choices = listIn(options).map(({ optionName }) => text(optionName));
  const told = [text(name), choices.filter(Boolean).join(' / ')].filter(Boolean);
  return line('poll', told.join(' — '));
}

function contactIn({ displayName, vcard }: proto.Message.IContactMessage): string {
  return [text(displayName), ...numbersIn(text(vcard) ?? '')].filter(Boolean).join(', ');
}

const MOST_NUMBERS = 5;

/** `item1.TEL;waid=4917…:+49 17…`: a property, its parameters, and its value after the colon (RFC 6350). */
function numbersIn(vcard: string): string[] {
  const numbers = vcard.split('\n').flatMap((each) => {
    const colon = each.indexOf(':');
    return /\bTEL\b/i.test(each.slice(0, Math.max(0, colon))) ? [each.slice(colon + 1).trim()] : [];
  });
  return numbers.slice(0, MOST_NUMBERS);
}

/** Every kind of content may have one. */
function contextOf(content: WhatsAppContent): MessageContext {
  for (const part of Object.values(content) as unknown[]) {
    if (isObject(part) && 'contextInfo' in part && isObject(part.contextInfo)) return part.contextInfo;
  }
  return {};
}

function listIn<Each>(list: Each[] | null | undefined): Each[] {
  return Array.isArray(list) ? list.filter(isObject) : [];
}

export function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
