/**
 * The ids of our own messages, made from the key by which the core knows a message: one that is sent again has the same
 * id and is the same message to WhatsApp, and what a peer asks for again can be found. The mark in them tells our
 * messages from those of the account's other devices; it comes from a key that is new with each link.
 */
import { createHash } from 'node:crypto';

/** With this the ids of web clients begin. */
const WEB = '3EB0';
const MARK_LENGTH = 8;
/** 22 characters in all, as usual; enough for numbers up to a million million. */
const NUMBER_LENGTH = 10;

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
  const tail = id.slice(WEB.length + MARK_LENGTH);
  if (tail.startsWith('K')) return Buffer.from(tail.slice(1), 'hex').toString();
  return /^[0-9A-F]{10}$/.test(tail) ? String(Number.parseInt(tail, 16)) : null;
}
