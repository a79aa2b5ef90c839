/** Where a message comes from: its chat and its sender, by all that is known of them. Pure, and total. */
import type { InboundChat, InboundMessage } from '../../core/message.js';
import {
  addressesOf,
  isGroup,
  isList,
  isSamePerson,
  numberOf,
  type Person,
  personOf,
  plainJid,
} from './jid.js';
import type { Envelope } from './payload.js';

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
