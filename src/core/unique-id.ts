/**
 * Ids that nobody has yet: UUIDs of version 7 (RFC 9562, section 5.7). They begin with the time, so rows that are added one
 * after the other lie beside each other in every index by them: one page is written, where random ids would take one each.
 */
import { randomUUID } from 'node:crypto';

/** `now`: milliseconds. */
export function uniqueId(now: number): string {
  const time = now.toString(16).padStart(12, '0');
  // Of version 4 only the four bits of the version differ: `…-4…-`.
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`;
}
