/**
 * WhatsApp's messages in our words. Pure, and total: whatever a message holds, it becomes an event or nothing.
 * Service messages, what we sent ourselves, and everything that is no chat with people are nothing.
 */

import { aesDecryptGCM, hkdf, proto } from '@whiskeysockets/baileys';
import type { Attachment, InboundChat, InboundEvent, InboundMessage, ReplyTo } from '../../core/message.js';
import { boundedEvent, mentioning } from '../kit/incoming.js';
import {
  albumOf,
  type Content,
  type Context,
  contentOf,
  type Envelope,
  type File,
  isChosen,
  isSecondFile,
  labelOf,
  readMessage,
  type Said,
  saidIn,
} from './content.js';
import {
  addressesOf,
  isGroup,
  isList,
  isSamePerson,
  numberOf,
  type Person,
  personOf,
  plainJid,
  userOf,
} from './ids.js';
import type { Secret } from './lookup.js';
import { sourceOf } from './media.js';

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

/** The account that we are linked to. */
export interface Me extends Person {
  phone: string;
  name: string | null;
}

/** What is known apart from the message itself. */
export interface Known {
  me: Me;
  /** Whether a message with this id was sent by us, not by another device of the account. */
  sentByUs(id: string): boolean;
  /** The other address of a person. */
  otherForm(jid: string): string | null;
  /** What somebody calls themselves. */
  nameOf(jid: string): string | null;
  titleOf(group: string): string | null;
  /** Who wrote a message in a chat; null where it is not remembered. */
  authorOf(chat: string, id: string): string | null;
  /** Whether they may delete what others wrote in a group. */
  manages(group: string, person: Person): boolean;
}

/** Who wrote where, and when. */
export interface Origin {
  chat: InboundChat;
  sender: InboundMessage['sender'];
  person: Person;
  sentAt: number;
}

export function originOf(envelope: Envelope, known: Known): Origin | null {
  const { messageTimestamp, pushName, verifiedBizName } = envelope;
  const { me } = known;
  const key = whereReadOf(envelope);
  const remote = plainJid(key.remoteJid);
  if (remote === null) return null;
  const chatPerson = isGroup(remote) ? null : chatPersonOf(remote, key.remoteJidAlt, known);
  const fromMe = key.fromMe === true;
  const person = fromMe ? me : (chatPerson ?? whoIs(key.participant, key.participantAlt, known));
  const addresses = addressesOf(person);
  if (addresses === null) return null;
  const own = fromMe ? me.name || pushName : pushName || verifiedBizName;
  const chat = chatPerson === null ? { address: remote } : addressesOf(chatPerson);
  if (chat === null) return null;
  return {
    chat: { ...chat, kind: chatPerson === null ? 'group' : 'direct' },
    sender: {
      ...addresses,
      ...(fromMe ? { self: true } : {}),
      name: own?.trim() || nameOf(person, known) || numberOf(person),
      administrator: false,
    },
    person,
    sentAt: (messageTimestamp ?? 0) * 1000,
  };
}

/**
 * What somebody sends to a list of people stands in the direct chat with each of them; the list itself is no chat. Whom
 * our own account has sent such a message to is not told.
 */
function whereReadOf({ key }: Envelope): Envelope['key'] {
  const { remoteJid, fromMe, participant, participantAlt, ...rest } = key;
  if (!isList(remoteJid) || fromMe === true || participant === undefined) return key;
  return { ...rest, remoteJid: participant, remoteJidAlt: participantAlt, fromMe: false };
}

/** The other person of a direct chat. In what our account sent, the second address may be our own. */
function chatPersonOf(remote: string, alternative: string | undefined, known: Known): Person {
  const { me } = known;
  if (isSamePerson(me, remote)) return me;
  const other = plainJid(alternative);
  return whoIs(remote, other !== null && isSamePerson(me, other) ? undefined : alternative, known);
}

export function whoIs(jid: string | undefined, alternative: string | undefined, known: Known): Person {
  const plain = plainJid(jid);
  if (plain === null) return { phone: null, lid: null };
  const person = personOf(plain, alternative);
  return person.phone !== null && person.lid !== null ? person : personOf(plain, known.otherForm(plain));
}

export function nameOf({ phone, lid }: Person, known: Known): string | null {
  return (phone && known.nameOf(phone)) || (lid && known.nameOf(lid)) || null;
}

export function titleOf({ chat, sender, person }: Origin, known: Known): string {
  if (chat.kind === 'group') return known.titleOf(chat.address) ?? chat.address;
  const other = personOf(chat.address, chat.otherAddress);
  if (!sender.self || isSamePerson(person, chat.address)) return sender.name;
  return nameOf(other, known) ?? numberOf(other);
}

const SEALED_EDIT = proto.Message.SecretEncryptedMessage.SecretEncType.MESSAGE_EDIT;

export type Sealed = NonNullable<Content['secretEncryptedMessage']>;

/** The same edit in the form that it had before; null where it cannot be read, or is none of its sender's. */
export function openEdit(sealed: Sealed, editor: Person, secrets: Secret[]): proto.IMessage | null {
  if (sealed.secretEncType !== SEALED_EDIT) return null;
  const { targetMessageKey, encPayload, encIv } = sealed;
  for (const { author, bytes } of secrets) {
    // Everybody in a group has the secret; only who wrote the message may change it.
    if (!isSamePerson(editor, author)) continue;
    for (const info of infosOf(targetMessageKey.id, editor)) {
      const edited = decrypted(encPayload, encIv, hkdf(bytes, 32, { info }));
      if (edited !== null) return editOf(targetMessageKey.id, edited);
    }
  }
  return null;
}

/** The writer stands in it twice, as the author and as the editor, each time in either form of their address. */
function infosOf(id: string, { lid, phone }: Person): string[] {
  const forms = [lid, phone].filter((form) => form !== null);
  return forms.flatMap((author) => forms.map((editor) => `${id}${author}${editor}Message Edit`));
}

function decrypted(payload: Uint8Array, iv: Uint8Array, key: Uint8Array): proto.Message | null {
  try {
    return proto.Message.decode(aesDecryptGCM(payload, key, iv, Buffer.alloc(0)));
  } catch {
    return null;
  }
}

/** What it changes is said by the envelope, with whose secret it could be opened. */
function editOf(id: string, message: proto.Message): proto.IMessage {
  const change = contentOf(message)?.protocolMessage;
  const editedMessage = change?.editedMessage ?? message;
  const timestampMs = change?.timestampMs;
  const edit = { key: { id, fromMe: true }, type: MESSAGE_EDIT, editedMessage };
  return { protocolMessage: timestampMs === undefined ? edit : { ...edit, timestampMs } };
}
