/** WhatsApp's ids: addresses (JIDs), our own messages' ids, and what the form of an id tells. Pure. */
import { createHash } from 'node:crypto';
import type { IdForms } from '../kit/descriptor.js';

const ADDRESS = /^([\w.-]+?)(?:_\d+)?(?::\d+)?@(s\.whatsapp\.net|c\.us|hosted\.lid|hosted|lid|g\.us)$/;
const SERVERS: Record<string, string> = {
  'c.us': 's.whatsapp.net',
  hosted: 's.whatsapp.net',
  'hosted.lid': 'lid',
};
/** WhatsApp itself, for announcements. */
const WHATSAPP = '0@s.whatsapp.net';

/** One person, by one or both forms of the address. */
export interface Person {
  phone: string | null;
  lid: string | null;
}

/** Without the device; null if neither a person nor a group: broadcasts, channels, assistants. */
export function plainJid(jid: unknown): string | null {
  const [, user, server] = (typeof jid === 'string' && ADDRESS.exec(jid)) || [];
  if (user === undefined || server === undefined) return null;
  const plain = `${user}@${SERVERS[server] ?? server}`;
  return plain === WHATSAPP ? null : plain;
}

export function isGroup(jid: string): boolean {
  return jid.endsWith('@g.us');
}

/** A broadcast list: each of its people gets a copy. The status broadcast does not count. */
export function isList(jid: string): boolean {
  return /^\d{1,30}@broadcast$/.test(jid);
}

export function isLid(jid: string): boolean {
  return jid.endsWith('@lid');
}

/** The digits before the `@`. */
export function userOf(jid: string): string {
  return jid.slice(0, jid.indexOf('@'));
}

/** From addresses of one person, in any order. */
export function personOf(...jids: (string | null | undefined)[]): Person {
  const known = jids
    .map(plainJid)
    .filter((jid) => jid !== null)
    .filter((jid) => !isGroup(jid));
  return { phone: known.find((jid) => !isLid(jid)) ?? null, lid: known.find(isLid) ?? null };
}

/** In the core's form: the phone address first if known, then the other one. */
export function addressesOf({ phone, lid }: Person): { address: string; otherAddress?: string } | null {
  const address = phone ?? lid;
  if (address === null) return null;
  return { address, ...(phone !== null && lid !== null ? { otherAddress: lid } : {}) };
}

export function isSamePerson(one: Person, jid: string): boolean {
  return jid === one.phone || jid === one.lid;
}

/** The phone number as people write it, else the other number. */
export function numberOf({ phone, lid }: Person): string {
  return phone === null ? userOf(lid ?? '') : `+${userOf(phone)}`;
}

// The ids of our messages are made from the core's key of the message: a resend has the same id, so WhatsApp
// sees the same message, and a message that a peer asks for again can be found. The mark in them, new with
// each link, tells our messages from those of the account's other devices.

/** Prefix of the ids of web clients. */
const WEB = '3EB0';
const MARK_LENGTH = 8;
const PREFIX_LENGTH = WEB.length + MARK_LENGTH;
/** 22 characters in all, as usual; enough for numbers up to 10¹². */
const NUMBER_LENGTH = 10;
/** Of a time in ms, in hexadecimal digits. */
const TIME_LENGTH = 11;

export function markOf(identityKey: Uint8Array): string {
  return createHash('sha256').update(identityKey).digest('hex').slice(0, MARK_LENGTH).toUpperCase();
}

/** `key` is letters, digits and `-`; mostly it is a number. */
export function messageId(mark: string, key: string): string {
  const number = /^(0|[1-9]\d{0,11})$/.test(key) ? Number(key) : Number.POSITIVE_INFINITY;
  const tail =
    number < 16 ** NUMBER_LENGTH
      ? number.toString(16).padStart(NUMBER_LENGTH, '0')
      : // `K` is no hexadecimal digit: such an id is never mistaken for one of a number.
        `K${Buffer.from(key).toString('hex')}`;
  return `${WEB}${mark}${tail}`.toUpperCase();
}

export function isOwnId(mark: string, id: string): boolean {
  return id.startsWith(`${WEB}${mark}`);
}

/** The inverse of `messageId`; null for ids of others. */
export function keyOf(mark: string, id: string): string | null {
  if (!isOwnId(mark, id)) return null;
  const tail = id.slice(PREFIX_LENGTH);
  if (tail.startsWith('K')) return Buffer.from(tail.slice(1), 'hex').toString();
  return /^[0-9A-F]{10}$/.test(tail) ? String(Number.parseInt(tail, 16)) : null;
}

/** Id of an edit of our message, made at that time, or of its deletion (null). Neither sign is a hexadecimal digit. */
export function changeId(mark: string, changed: string, editedAt: number | null): string {
  const sign = editedAt === null ? 'Z' : `X${editedAt.toString(16).padStart(TIME_LENGTH, '0')}`;
  const tail = isOwnId(mark, changed) ? changed.slice(PREFIX_LENGTH) : '';
  return `${WEB}${mark}${sign}${tail}`.toUpperCase();
}

/** The message that is changed by one with this id; null for other ids. */
export function changedBy(mark: string, id: string): { id: string; kind: 'edit' | 'deletion' } | null {
  if (!isOwnId(mark, id)) return null;
  const [, edit, deletion] = /^(?:X[0-9A-F]{11}(.+)|Z(.+))$/.exec(id.slice(PREFIX_LENGTH)) ?? [];
  const of = (tail: string) => `${WEB}${mark}${tail}`;
  if (edit !== undefined) return { id: of(edit), kind: 'edit' };
  return deletion === undefined ? null : { id: of(deletion), kind: 'deletion' };
}

/** A group is `1203…@g.us`, an older one `<phone>-<time>@g.us`. */
const GROUP = /^\d{5,25}(-\d{5,15})?@g\.us$/;
/** A phone number has at most 15 digits (ITU-T E.164); other numbers are not longer. */
const PERSON = /^\d{3,20}@(s\.whatsapp\.net|lid)$/;

/** From `src/WABinary/jid-utils.ts` of Baileys: people by phone number or by `@lid`, and groups. */
export const whatsappIds: IdForms = {
  expected: 'whatsapp_491701234567@s.whatsapp.net (or …@lid) for a person, whatsapp_1203…@g.us for a group',
  kindOf(address) {
    // Only the form that the channel itself writes: any other would match no chat.
    if (plainJid(address) !== address) return null;
    if (isGroup(address)) return GROUP.test(address) ? 'group' : null;
    return PERSON.test(address) ? 'sender' : null;
  },
};
