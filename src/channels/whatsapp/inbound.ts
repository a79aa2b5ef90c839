/** WhatsApp's messages as events. Pure and total: service messages and our own become nothing. */
import { aesDecryptGCM, hkdf, proto } from '@whiskeysockets/baileys';
import type { Attachment, InboundChat, InboundEvent, InboundMessage, ReplyTo } from '../../core/message.js';
import { boundedEvent, mentioning, text } from '../kit/incoming.js';
import {
  albumOf,
  bytesIn,
  contentOf,
  countIn,
  isChosen,
  isObject,
  isSecondFile,
  labelOf,
  type MessageContext,
  type MessageFile,
  type ReadContent,
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
import { type MessageKey, sourceOf } from './media.js';

const { REVOKE, MESSAGE_EDIT } = proto.Message.ProtocolMessage.Type;
const SEALED_EDIT = proto.Message.SecretEncryptedMessage.SecretEncType.MESSAGE_EDIT;

export interface OwnAccount extends Person {
  phone: string;
  name: string | null;
}

export interface KnownContext {
  me: OwnAccount;
  /** Whether we sent the message with this id, not another device of the account. */
  sentByUs(id: string): boolean;
  /** A person's other address. */
  otherForm(jid: string): string | null;
  /** The name that a person gave themselves. */
  nameOf(jid: string): string | null;
  titleOf(group: string): string | null;
  /** Author of a message in a chat; null if not remembered. */
  authorOf(chat: string, id: string): string | null;
  /** Whether the person may delete other people's messages in a group. */
  manages(group: string, person: Person): boolean;
}

/** Author, chat and time of a message. */
interface MessageOrigin {
  key: MessageKey;
  chat: InboundChat;
  by: { address: string; otherAddress?: string; self?: true };
  name: string;
  person: Person;
  sentAt: number;
}

export function inbound(message: unknown, known: KnownContext): InboundEvent | null {
  const event = eventOf(message, known);
  return event && boundedEvent(event);
}

function eventOf(message: unknown, known: KnownContext): InboundEvent | null {
  const origin = originOf(message, known);
  const content = isObject(message) && 'message' in message ? contentOf(message.message) : null;
  if (origin === null || content === null || known.sentByUs(origin.key.id)) return null;
  const { protocolMessage, reactionMessage } = content;
  if (protocolMessage) return changeIn(protocolMessage, origin, known);
  if (reactionMessage) return reactionOf(reactionMessage, origin);
  const said = isSecondFile(content) ? null : saidIn(content);
  if (said === null) return null;
  const event = messageOf(said, origin, known);
  const album = albumOf(content);
  if (album !== null) event.album = album;
  if (isChosen(content)) Object.assign(event, { forwardedFrom: '', mentionsBot: false });
  return event;
}

/** When a message was sent, ms; 0 if absent. */
export function sentAtOf(message: { messageTimestamp?: unknown }): number {
  return (countIn(message.messageTimestamp) ?? 0) * 1000;
}

export function originOf(message: unknown, known: KnownContext): MessageOrigin | null {
  if (!isObject(message)) return null;
  const envelope = message as { key?: unknown; pushName?: unknown; verifiedBizName?: unknown };
  const key = keyIn(envelope.key);
  if (key === null) return null;
  const { remoteJid, remoteJidAlt, participant, participantAlt, fromMe } = whereRead(key);
  const remote = plainJid(remoteJid);
  if (remote === null) return null;
  const { me } = known;
  const chatPerson = isGroup(remote) ? null : chatPersonOf(remote, remoteJidAlt, known);
  const person = fromMe ? me : (chatPerson ?? whoIs(participant, participantAlt, known));
  const addresses = addressesOf(person);
  const chat = chatPerson === null ? { address: remote } : addressesOf(chatPerson);
  if (addresses === null || chat === null) return null;
  const name = text(envelope.pushName);
  const own = fromMe ? me.name || name : name || text(envelope.verifiedBizName);
  return {
    key,
    chat: { ...chat, kind: chatPerson === null ? 'group' : 'direct' },
    by: fromMe ? { ...addresses, self: true } : addresses,
    name: own?.trim() || nameOf(person, known) || numberOf(person),
    person,
    sentAt: sentAtOf(message),
  };
}

function keyIn(value: unknown): MessageKey | null {
  const key = isObject(value) ? (value as Partial<Record<keyof MessageKey, unknown>>) : {};
  const remoteJid = text(key.remoteJid);
  const id = text(key.id);
  if (remoteJid === undefined || id === undefined) return null;
  return {
    remoteJid,
    id,
    fromMe: key.fromMe === true,
    remoteJidAlt: text(key.remoteJidAlt),
    participant: text(key.participant),
    participantAlt: text(key.participantAlt),
  };
}

/** A message to a broadcast list is read in the direct chat with its sender. */
function whereRead(key: MessageKey): MessageKey {
  const { remoteJid, fromMe, participant, participantAlt } = key;
  if (!isList(remoteJid) || fromMe || participant === undefined) return key;
  return { ...key, remoteJid: participant, remoteJidAlt: participantAlt };
}

/** The other person of a direct chat. In messages from our account, the second address may be our own. */
function chatPersonOf(remote: string, alternative: string | undefined, known: KnownContext): Person {
  const { me } = known;
  if (isSamePerson(me, remote)) return me;
  const other = plainJid(alternative);
  return whoIs(remote, other !== null && isSamePerson(me, other) ? undefined : alternative, known);
}

function whoIs(jid: string | undefined, alternative: string | undefined, known: KnownContext): Person {
  const plain = plainJid(jid);
  if (plain === null) return { phone: null, lid: null };
  const person = personOf(plain, alternative);
  return person.phone !== null && person.lid !== null ? person : personOf(plain, known.otherForm(plain));
}

function nameOf({ phone, lid }: Person, known: KnownContext): string | null {
  return (phone && known.nameOf(phone)) || (lid && known.nameOf(lid)) || null;
}

function titleOf({ chat, by, name, person }: MessageOrigin, known: KnownContext): string {
  if (chat.kind === 'group') return known.titleOf(chat.address) ?? chat.address;
  const other = personOf(chat.address, chat.otherAddress);
  if (!by.self || isSamePerson(person, chat.address)) return name;
  return nameOf(other, known) ?? numberOf(other);
}

function messageOf(said: ReadContent, origin: MessageOrigin, known: KnownContext): InboundMessage {
  const { key, chat, by, name, person, sentAt } = origin;
  const { context, files } = said;
  const isForward = isForwarded(context);
  const own = files.map((file) => attachmentOf(file, key));
  const attachments = isForward ? own : [...own, ...quotedFiles(context, key, known)];
  return {
    kind: 'message',
    chat: { ...chat, title: titleOf(origin, known) },
    threadId: null,
    platformMessageId: key.id,
    sender: { ...by, name, administrator: false },
    ...withNames(said, known),
    ...(attachments.length > 0 ? { attachments } : {}),
    sentAt,
    mentionsBot: !isForward && mentionsUs(said, known),
    replyTo: isForward ? null : replyOf(context, person, known),
    // WhatsApp does not tell the author of a forward.
    ...(isForward ? { forwardedFrom: '' } : {}),
  };
}

function isForwarded({ isForwarded, forwardingScore }: MessageContext): boolean {
  return isForwarded === true || (countIn(forwardingScore) ?? 0) > 0;
}

/** Files of the message that this one replies to; the quotation has all data to fetch them. */
function quotedFiles(context: MessageContext, { remoteJid }: MessageKey, known: KnownContext): Attachment[] {
  const stanzaId = text(context.stanzaId);
  const quoted = contentOf(context.quotedMessage);
  if (!stanzaId || quoted === null) return [];
  const participant = text(context.participant);
  const author = plainJid(participant);
  const fromMe = known.sentByUs(stanzaId) || (author !== null && isSamePerson(known.me, author));
  const files = (saidIn(quoted)?.files ?? []).filter(({ media }) => bytesIn(media.mediaKey) !== undefined);
  return files.map((file) => ({
    ...attachmentOf(file, { remoteJid, id: stanzaId, fromMe, participant }),
    ofReply: true,
    told: true,
  }));
}

/** Somebody edited or deleted a message. */
function changeIn(
  change: proto.Message.IProtocolMessage,
  { chat, by, person, sentAt }: MessageOrigin,
  known: KnownContext,
): InboundEvent | null {
  const id = text(change.key?.id);
  if (id === undefined) return null;
  const author = known.authorOf(chat.address, id);
  const isTheirOwn = change.key?.fromMe === true && (author === null || isSamePerson(person, author));
  if (change.type === REVOKE) {
    if (!isTheirOwn && !(chat.kind === 'group' && known.manages(chat.address, person))) return null;
    return { kind: 'deleted', chat, platformMessageIds: [id], ...(isTheirOwn ? { sender: by } : {}) };
  }
  const content = contentOf(change.editedMessage);
  const said = content && saidIn(content);
  // The owner can edit on the phone what we said: that is nobody's message.
  if (change.type !== MESSAGE_EDIT || !said || !isTheirOwn || known.sentByUs(id)) return null;
  return {
    kind: 'edit',
    chat,
    sender: by,
    platformMessageId: id,
    ...withNames(said, known),
    mentionsBot: mentionsUs(said, known),
    editedAt: countIn(change.timestampMs) ?? sentAt,
  };
}

/** Without an emoji, the reaction was removed. */
function reactionOf(
  reaction: proto.Message.IReactionMessage,
  { chat, by, name, sentAt }: MessageOrigin,
): InboundEvent | null {
  const id = text(reaction.key?.id);
  const sign = text(reaction.text);
  if (id === undefined || !sign) return null;
  const at = countIn(reaction.senderTimestampMs) ?? sentAt;
  return { kind: 'reaction', chat, sender: { ...by, name }, platformMessageIds: [id], sign, sentAt: at };
}

const MENTION = /(?<!\w)@\+?(\d+)/g;

function mentionedIn({ mentionedJid }: MessageContext): string[] {
  return Array.isArray(mentionedJid) ? mentionedJid.map(plainJid).filter((jid) => jid !== null) : [];
}

/** By the platform's mention, or by `@` and one of our two numbers as typed text. */
function mentionsUs({ words, context }: ReadContent, { me }: KnownContext): boolean {
  if (mentionedIn(context).some((jid) => isSamePerson(me, jid))) return true;
  const own = numbersOf(me);
  return [...words.matchAll(MENTION)].some(([, number = '']) => own.includes(number));
}

function numbersOf({ phone, lid }: Person): string[] {
  return [phone, lid].flatMap((jid) => (jid === null ? [] : [userOf(jid)]));
}

/** WhatsApp writes `@` and a number where people see a name. */
function withNames(
  { words, context }: ReadContent,
  known: KnownContext,
): { text: string; mentions?: string[] } {
  const own = known.me.name || 'me';
  const names = new Map(numbersOf(known.me).map((number) => [number, own]));
  for (const jid of mentionedIn(context)) {
    const name = isSamePerson(known.me, jid) ? own : nameOf(whoIs(jid, undefined, known), known);
    if (name) names.set(userOf(jid), name);
  }
  const named = words.replace(MENTION, (written, number: string) => {
    const name = names.get(number);
    return name === undefined ? written : `@${name}`;
  });
  return { text: named, ...mentioning(names.values()) };
}

/** Messages that the owner typed on the phone are not ours. An earlier link's ids share our prefix. */
function replyOf(context: MessageContext, writer: Person, known: KnownContext): ReplyTo | null {
  const stanzaId = text(context.stanzaId);
  if (!stanzaId) return null;
  const author = plainJid(context.participant);
  const isOfAccount = author !== null && isSamePerson(known.me, author);
  const isOwn = author !== null && isSamePerson(writer, author);
  const person = author === null ? null : whoIs(author, undefined, known);
  const name = isOfAccount ? known.me.name : person && (nameOf(person, known) ?? numberOf(person));
  const quoted = contentOf(context.quotedMessage);
  return {
    platformMessageId: stanzaId,
    senderName: name ?? '',
    text: quoted === null ? '' : labelOf(quoted),
    ...(quoted !== null && isForwarded(saidIn(quoted)?.context ?? {}) ? { forwardedFrom: '' } : {}),
    // The sender's client writes name and text.
    told: true,
    ours: known.sentByUs(stanzaId) || (isOfAccount && !isOwn && stanzaId.startsWith('3EB0')),
  };
}

function attachmentOf({ kind, media }: MessageFile, key: MessageKey): Attachment {
  return {
    kind,
    source: sourceOf(kind, media, key),
    name: text(media.fileName) || text(media.title) || null,
    mimeType: text(media.mimetype) || null,
    bytes: countIn(media.fileLength) ?? null,
    seconds: countIn(media.seconds) || null,
  };
}

/** Decrypts an edit with its message's secret (since May 2026); null if unreadable or not the author's. */
export function openEdit(
  { secretEncType, targetMessageKey, encPayload, encIv }: proto.Message.ISecretEncryptedMessage,
  editor: Person,
  secrets: { author: string; bytes: Buffer }[],
): proto.IMessage | null {
  const id = text(targetMessageKey?.id);
  const payload = bytesIn(encPayload);
  const iv = bytesIn(encIv);
  if (secretEncType !== SEALED_EDIT || id === undefined || !payload || !iv) return null;
  const forms = [editor.lid, editor.phone].filter((form) => form !== null);
  // Everybody in a group has the secret; only the author may change the message.
  for (const { bytes } of secrets.filter(({ author }) => isSamePerson(editor, author))) {
    // The author occurs in it twice, as author and as editor, each in either form of the address.
    for (const who of forms.flatMap((author) => forms.map((form) => `${author}${form}`))) {
      const key = hkdf(bytes, 32, { info: `${id}${who}Message Edit` });
      const message = decrypted(payload, iv, key);
      if (message === null) continue;
      // The envelope names the changed message: its secret opened the edit.
      const change = contentOf(message)?.protocolMessage;
      const edit = { type: MESSAGE_EDIT, editedMessage: change?.editedMessage ?? message };
      const timestampMs = countIn(change?.timestampMs) ?? null;
      return { protocolMessage: { key: { id, fromMe: true }, ...edit, timestampMs } };
    }
  }
  return null;
}

function decrypted(payload: Uint8Array, iv: Uint8Array, key: Uint8Array): proto.Message | null {
  try {
    return proto.Message.decode(aesDecryptGCM(payload, key, iv, Buffer.alloc(0)));
  } catch {
    return null;
  }
}
