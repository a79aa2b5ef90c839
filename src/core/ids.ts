/** Ids. Those of chats and people are built by the channel, opaque to all else, and safe as folder names. */
import { randomUUID } from 'node:crypto';

/** `<channel>_<platform's id>`: `telegram_-1001234567890`, `terminal_local`. Sender ids have the same form. */
export type ChatId = string;

/** A chat, or a thread in it: `telegram_-100123`, `telegram_-100123/45`. Each room has one lease. */
export type RoomId = string;

/** The slug of a persona's name; `default` always exists. */
export type PersonaId = string;

export const DEFAULT_PERSONA: PersonaId = 'default';

/** Percent-encodes (UTF-8, upper case) everything but ASCII letters, digits, `.`, `_`, `-` and `@`. */
export function platformId(channel: string, address: string): ChatId {
  let safe = '';
  for (const byte of Buffer.from(address, 'utf8')) {
    const character = String.fromCharCode(byte);
    safe += /[A-Za-z0-9._@-]/.test(character)
      ? character
      : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }
  return `${channel}_${safe}`;
}

/** The channel of an id. Channel names contain no underscore. */
export function channelOf(id: ChatId): string {
  return id.slice(0, id.indexOf('_'));
}

/** Chat ids contain no slash, so `roomParts` can split it. */
export function roomId(chatId: ChatId, threadId: string | null): RoomId {
  return threadId === null ? chatId : `${chatId}/${threadId}`;
}

export function roomParts(room: RoomId): { chatId: ChatId; threadId: string | null } {
  const slash = room.indexOf('/');
  return slash < 0
    ? { chatId: room, threadId: null }
    : { chatId: room.slice(0, slash), threadId: room.slice(slash + 1) };
}

/** The platform's own id; the inverse of `platformId`. */
export function addressOf(id: ChatId): string {
  return decodeURIComponent(id.slice(id.indexOf('_') + 1));
}

/**
 * A unique id: UUID version 7 (RFC 9562, section 5.7). It starts with the time `now` (ms), so consecutive rows share
 * index pages; random ids would dirty a page each.
 */
export function uniqueId(now: number): string {
  const time = now.toString(16).padStart(12, '0');
  // A version 4 UUID differs only in its version digit: `…-4…-`.
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`;
}

export function eventIdOf(messageId: number): string {
  return `evt-${messageId}`;
}

export function callEntryId(turnId: string, callId: string): string {
  return `turn-${turnId}-${callId}`;
}

export function seenKey(chatId: ChatId, personaId: PersonaId, tier: number): string {
  return `${chatId}/${personaId}/${tier}`;
}
