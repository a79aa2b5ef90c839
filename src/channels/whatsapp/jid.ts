/**
 * WhatsApp's addresses. A person has two: by phone number (`4917…@s.whatsapp.net`) and by a number that says
 * nothing (`1234…@lid`); messages come with either, mostly with both. A device of a person has `:12` in its
 * address, which is nobody's chat.
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

export function isLid(jid: string): boolean {
  return jid.endsWith('@lid');
}

/** The digits before the `@`. */
export function userOf(jid: string): string {
  return jid.slice(0, jid.indexOf('@'));
}

/** Of addresses that are one person's, in any order. */
export function personOf(...jids: (string | null | undefined)[]): Person {
  const known = jids
    .map(plainJid)
    .filter((jid) => jid !== null)
    .filter((jid) => !isGroup(jid));
  return { phone: known.find((jid) => !isLid(jid)) ?? null, lid: known.find(isLid) ?? null };
}

/** As the core wants it: the phone form where it is known, and the other one. */
export function addressesOf({ phone, lid }: Person): { address: string; otherAddress?: string } | null {
  const address = phone ?? lid;
  if (address === null) return null;
  return { address, ...(phone !== null && lid !== null ? { otherAddress: lid } : {}) };
}

export function isSamePerson(one: Person, jid: string): boolean {
  return jid === one.phone || jid === one.lid;
}

/** A phone number as people write it; of a person without one, what there is. */
export function numberOf({ phone, lid }: Person): string {
  return phone === null ? userOf(lid ?? '') : `+${userOf(phone)}`;
}
