/**
 * WhatsApp's messages in our words. Pure, and total: whatever a message holds, it becomes an event or nothing.
 * Service messages, what we sent ourselves, and everything that is no chat with people are nothing.
 */
import type { Attachment, InboundEvent, InboundMessage, ReplyTo } from '../../core/message.js';
import { boundedEvent, mentioning } from '../kit/incoming.js';
import {
  albumOf,
  contentOf,
  type File,
  isChosen,
  isSecondFile,
  labelOf,
  type Said,
  saidIn,
} from './content.js';
import { isSamePerson, numberOf, type Person, plainJid, userOf } from './jid.js';
import { type Known, nameOf, type Origin, originOf, titleOf, whoIs } from './origin.js';
import { type Content, type Context, type Envelope, readMessage } from './payload.js';
import { sourceOf } from './source.js';

/** WhatsApp's numbers for the kinds of service messages. */
const REVOKE = 0;
const MESSAGE_EDIT = 14;

export function inbound(message: unknown, known: Known): InboundEvent | null {
  const event = eventOf(message, known);
  return event && boundedEvent(event);
}

function eventOf(message: unknown, known: Known): InboundEvent | null {
  const envelope = readMessage(message);
  const content = contentOf(envelope?.message);
  if (envelope === undefined || content === null || known.sentByUs(envelope.key.id)) return null;
  const origin = originOf(envelope, known);
  if (origin === null) return null;
  if (content.protocolMessage) return changeIn(content.protocolMessage, origin, known);
  if (content.reactionMessage) return reactionOf(content.reactionMessage, origin);
  const said = isSecondFile(content) ? null : saidIn(content);
  if (said === null) return null;
  const album = albumOf(content);
  const event = messageOf(said, envelope, origin, known);
  return {
    ...event,
    ...(album === null ? {} : { album }),
    ...(isChosen(content) ? { forwardedFrom: '', mentionsBot: false } : {}),
  };
}

function messageOf(said: Said, envelope: Envelope, origin: Origin, known: Known): InboundMessage {
  const { chat, sender, person, sentAt } = origin;
  const isForward = isForwardIn(said.context);
  const attachments = [
    ...said.files.map((file) => attachmentOf(file, envelope.key)),
    ...(isForward ? [] : quotedFiles(said.context, envelope, known)),
  ];
  return {
    kind: 'message',
    chat: { ...chat, title: titleOf(origin, known) },
    threadId: null,
    platformMessageId: envelope.key.id,
    sender,
    ...withNames(said, known),
    ...(attachments.length > 0 ? { attachments } : {}),
    sentAt,
    mentionsBot: !isForward && namesUs(said, known),
    replyTo: isForward ? null : replyOf(said.context, person, known),
    // WhatsApp does not say whose words they were.
    ...(isForward ? { forwardedFrom: '' } : {}),
  };
}

function isForwardIn({ isForwarded, forwardingScore = 0 }: Context): boolean {
  return isForwarded === true || forwardingScore > 0;
}

/** The files of the message that this one replies to; it holds all that is needed to fetch them. */
function quotedFiles({ stanzaId, participant, quotedMessage }: Context, { key }: Envelope, known: Known) {
  const quoted = contentOf(quotedMessage);
  if (!stanzaId || quoted === null) return [];
  const author = plainJid(participant);
  const fromMe = known.sentByUs(stanzaId) || (author !== null && isSamePerson(known.me, author));
  const quotedKey = { remoteJid: key.remoteJid, id: stanzaId, fromMe, participant };
  return (saidIn(quoted)?.files ?? [])
    .filter(({ media }) => media.mediaKey !== undefined)
    .map((file): Attachment => ({ ...attachmentOf(file, quotedKey), ofReply: true, told: true }));
}

type Change = NonNullable<Content['protocolMessage']>;

/** Somebody edited or deleted a message. */
function changeIn(
  protocol: Change,
  { chat, sender, person, sentAt }: Origin,
  known: Known,
): InboundEvent | null {
  const { key } = protocol;
  if (key === undefined) return null;
  const author = known.authorOf(chat.address, key.id);
  const theirOwn = key.fromMe === true && (author === null || isSamePerson(person, author));
  if (protocol.type === REVOKE) {
    if (!theirOwn && !(chat.kind === 'group' && known.manages(chat.address, person))) return null;
    const { name: _, administrator: __, ...by } = sender;
    return { kind: 'deleted', chat, platformMessageIds: [key.id], ...(theirOwn ? { sender: by } : {}) };
  }
  const content = contentOf(protocol.editedMessage);
  const said = content && saidIn(content);
  if (protocol.type !== MESSAGE_EDIT || !said || !theirOwn) return null;
  const { name: _, administrator: __, ...who } = sender;
  return {
    kind: 'edit',
    chat,
    sender: who,
    platformMessageId: key.id,
    ...withNames(said, known),
    mentionsBot: namesUs(said, known),
    editedAt: protocol.timestampMs ?? sentAt,
  };
}

/** Without an emoji, a reaction was taken away. */
function reactionOf(
  { key, text: sign, senderTimestampMs }: NonNullable<Content['reactionMessage']>,
  { chat, sender, sentAt }: Origin,
): InboundEvent | null {
  if (!sign) return null;
  const { administrator: _, ...by } = sender;
  return {
    kind: 'reaction',
    chat,
    sender: by,
    platformMessageIds: [key.id],
    sign,
    sentAt: senderTimestampMs ?? sentAt,
  };
}

/** By the platform's mention, or by `@` and one of our two numbers, typed as it is. */
function namesUs({ words, context }: Said, { me }: Known): boolean {
  const mentioned = (context.mentionedJid ?? []).map(plainJid);
  if (mentioned.some((jid) => jid !== null && isSamePerson(me, jid))) return true;
  const own = numbersOf(me);
  return [...words.matchAll(MENTION)].some(([, number = '']) => own.includes(number));
}

const MENTION = /(?<!\w)@\+?(\d+)/g;

function numbersOf({ phone, lid }: Person): string[] {
  return [phone, lid].flatMap((jid) => (jid === null ? [] : [userOf(jid)]));
}

/** WhatsApp writes `@` and a number where people see a name. */
function withNames({ words, context }: Said, known: Known): Pick<InboundMessage, 'text' | 'mentions'> {
  const names = new Map(numbersOf(known.me).map((number) => [number, ownName(known)]));
  for (const mentioned of context.mentionedJid ?? []) {
    const jid = plainJid(mentioned);
    const name = jid && nameFor(jid, known);
    if (jid && name) names.set(userOf(jid), name);
  }
  const text = words.replace(MENTION, (written, number: string) => {
    const name = names.get(number);
    return name === undefined ? written : `@${name}`;
  });
  return { text, ...mentioning(names.values()) };
}

function ownName({ me }: Known): string {
  return me.name || 'me';
}

function nameFor(jid: string, known: Known): string | null {
  if (isSamePerson(known.me, jid)) return ownName(known);
  return nameOf(whoIs(jid, undefined, known), known);
}

/**
 * Ours is what we sent, not what the owner of the account typed on the phone: ids of the phone look different. (What we
 * sent through an earlier link has another mark in its id, but the same beginning.)
 */
function replyOf(context: Context, writer: Person, known: Known): ReplyTo | null {
  const { stanzaId, participant, quotedMessage } = context;
  if (!stanzaId) return null;
  const author = plainJid(participant);
  const ofAccount = author !== null && isSamePerson(known.me, author);
  const quoted = contentOf(quotedMessage);
  const person = author === null ? null : whoIs(author, undefined, known);
  const ofThemselves = author !== null && isSamePerson(writer, author);
  const name = ofAccount ? known.me.name : person && (nameOf(person, known) ?? numberOf(person));
  return {
    platformMessageId: stanzaId,
    senderName: name ?? '',
    text: quoted === null ? '' : labelOf(quoted),
    ...(quoted !== null && isForwardIn(saidIn(quoted)?.context ?? {}) ? { forwardedFrom: '' } : {}),
    // Both are written by whoever replies.
    told: true,
    ours: known.sentByUs(stanzaId) || (ofAccount && !ofThemselves && stanzaId.startsWith('3EB0')),
  };
}

function attachmentOf({ kind, media }: File, key: Envelope['key']): Attachment {
  return {
    kind,
    source: sourceOf(kind, media, key),
    name: media.fileName || media.title || null,
    mimeType: media.mimetype || null,
    bytes: media.fileLength ?? null,
    seconds: media.seconds || null,
  };
}
