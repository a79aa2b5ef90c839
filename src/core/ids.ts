/**
 * Ids. Every id is a string built by the channel from the platform's own id and opaque to everybody else. Every id is
 * also a safe folder name, because `groups/` is organised by ids.
 */

/** `<channel>_<platform's id>`: `telegram_-1001234567890`, `terminal_local`. Ids of senders have the same form. */
export type ChatId = string;

/** A chat and, optionally, a thread in it: `telegram_-100123` or `telegram_-100123/45`. Each room has one lease. */
export type RoomId = string;

/** The slug of a persona's name; `default` always exists. */
export type PersonaId = string;

export const DEFAULT_PERSONA: PersonaId = 'default';

/** Percent-encodes (UTF-8, upper case) all characters but ASCII letters, digits, `.`, `_`, `-` and `@`. */
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

/** The channel's name in an id. Channel names contain no underscore. */
export function channelOf(id: ChatId): string {
  return id.slice(0, id.indexOf('_'));
}

/** A chat id never contains a slash, so `roomParts` can split it again. */
export function roomId(chatId: ChatId, threadId: string | null): RoomId {
  return threadId === null ? chatId : `${chatId}/${threadId}`;
}

export function roomParts(room: RoomId): { chatId: ChatId; threadId: string | null } {
  const slash = room.indexOf('/');
  return slash < 0
    ? { chatId: room, threadId: null }
    : { chatId: room.slice(0, slash), threadId: room.slice(slash + 1) };
}

/** The platform's own id: the inverse of `platformId`. */
export function addressOf(id: ChatId): string {
  return decodeURIComponent(id.slice(id.indexOf('_') + 1));
}
