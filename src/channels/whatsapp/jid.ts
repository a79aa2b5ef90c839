/**
 * WhatsApp's addresses (JIDs). A person has two: by phone number (`4917…@s.whatsapp.net`) and by an arbitrary number
 * (`1234…@lid`); messages come with either, mostly with both. The address of a person's device has `:12` in it, and is
 * no chat.
 */

const ADDRESS = /^([\w.-]+?)(?:_\d+)?(?::\d+)?@(s\.whatsapp\.net|c\.us|hosted\.lid|hosted|lid|g\.us)$/;
const SERVERS: Record<string, string> = {
  'c.us': 's.whatsapp.net',
  hosted: 's.whatsapp.net',
  'hosted.lid': 'lid',
};
/** WhatsApp itself, announcing something. */
const WHATSAPP = '0@s.whatsapp.net';

/** One person, by whichever of the two forms are known. */
export interface Person {
  phone: string | null;
  lid: string | null;
}

/** Without the device; null for whatever is neither a person nor a group: broadcasts, channels, assistants. */
export function plainJid(jid: unknown): string | null {
  const [, user, server] = (typeof jid === 'string' && ADDRESS.exec(jid)) || [];
  if (user === undefined || server === undefined) return null;
  const plain = `${user}@${SERVERS[server] ?? server}`;
  return plain === WHATSAPP ? null : plain;
}

export function isGroup(jid: string): boolean {
  return jid.endsWith('@g.us');
}

/** A list of people, to each of whom a message goes by itself. Everybody's status is none. */
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

/** As the core wants it: first the phone form where it is known, then the other one. */
export function addressesOf({ phone, lid }: Person): { address: string; otherAddress?: string } | null {
  const address = phone ?? lid;
  if (address === null) return null;
  return { address, ...(phone !== null && lid !== null ? { otherAddress: lid } : {}) };
}

export function isSamePerson(one: Person, jid: string): boolean {
  return jid === one.phone || jid === one.lid;
}

/** The phone number as people write it; the other number where there is none. */
export function numberOf({ phone, lid }: Person): string {
  return phone === null ? userOf(lid ?? '') : `+${userOf(phone)}`;
}
