/**
 * WhatsApp's messages in our words. Pure, and total: whatever a message holds, it becomes an event or nothing.
 * Service messages, what we sent ourselves, and everything that is no chat with people are nothing.
 */
import type { Attachment, InboundEvent, InboundMessage, ReplyTo } from '../../core/message.js';
import { contentOf, type File, labelOf, type Said, saidIn } from './content.js';
import { isSamePerson, numberOf, type Person, plainJid, userOf } from './jid.js';
import { type Known, nameOf, type Origin, originOf, titleOf, whoIs } from './origin.js';
import { type Content, type Context, type Envelope, readMessage } from './payload.js';
import { sourceOf } from './source.js';

/** WhatsApp's numbers for the kinds of service messages. */
const REVOKE = 0;
const MESSAGE_EDIT = 14;

export function inbound(message: unknown, known: Known): InboundEvent | null {
  const envelope = readMessage(message);
  const content = contentOf(envelope?.message);
  if (envelope === undefined || content === null || known.sentByUs(envelope.key.id)) return null;
  const origin = originOf(envelope, known);
  if (origin === null) return null;
  if (content.protocolMessage) return changeIn(content.protocolMessage, origin, known);
  if (content.reactionMessage) return reactionOf(content.reactionMessage, origin);
  const said = saidIn(content);
  return said === null ? null : messageOf(said, envelope, origin, known);
}

function messageOf(said: Said, envelope: Envelope, origin: Origin, known: Known): InboundMessage {
  const { chat, sender, person, sentAt } = origin;
  const attachments = said.files.map((file) => attachmentOf(file, envelope));
  return {
    kind: 'message',
    chat: { ...chat, title: titleOf(origin, known) },
    threadId: null,
    platformMessageId: envelope.key.id,
    sender,
    text: withNames(said, known),
    ...(attachments.length > 0 ? { attachments } : {}),
    sentAt,
    mentionsBot: namesUs(said.context, known),
    replyTo: replyOf(said.context, person, known),
  };
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
    text: withNames(said, known),
    mentionsBot: namesUs(said.context, known),
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

function namesUs({ mentionedJid = [] }: Context, { me }: Known): boolean {
  return mentionedJid.map(plainJid).some((jid) => jid !== null && isSamePerson(me, jid));
}

/** WhatsApp writes `@` and a number where people see a name. */
function withNames({ words, context }: Said, known: Known): string {
  const names = new Map<string, string>();
  for (const mentioned of context.mentionedJid ?? []) {
    const jid = plainJid(mentioned);
    const name = jid && nameFor(jid, known);
    if (jid && name) names.set(userOf(jid), name);
  }
  if (names.size === 0) return words;
  return words.replace(/@(\d+)/g, (written, number: string) => {
    const name = names.get(number);
    return name === undefined ? written : `@${name}`;
  });
}

function nameFor(jid: string, known: Known): string | null {
  if (isSamePerson(known.me, jid)) return known.me.name || 'me';
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
    ours: known.sentByUs(stanzaId) || (ofAccount && !ofThemselves && stanzaId.startsWith('3EB0')),
  };
}

function attachmentOf({ kind, media }: File, { key }: Envelope): Attachment {
  return {
    kind,
    source: sourceOf(kind, media, key),
    name: media.fileName || media.title || null,
    mimeType: media.mimetype || null,
    bytes: media.fileLength ?? null,
    seconds: media.seconds || null,
  };
}
