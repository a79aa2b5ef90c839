/**
 * How things are named. Every id is a string, made by the channel that knows the platform's own id and
 * opaque to everybody else; every id is also a safe folder name, because `groups/` is laid out by them.
 */

/** `<channel>_<platform's id>`: `telegram_-1001234567890`, `terminal_local`. Also the form of a sender's id. */
export type ChatId = string;

/** A chat and, where there is one, a thread in it: `telegram_-100123` or `telegram_-100123/45`. Has one lease. */
export type RoomId = string;

/** The slug of a persona's name; `default` always exists. */
export type PersonaId = string;

export const DEFAULT_PERSONA: PersonaId = 'default';

/** Characters other than ASCII letters, digits, `.`, `_`, `-` and `@` are percent-encoded (UTF-8), upper case. */
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

/** The channel's name in an id. Channel names hold no underscore. */
export function channelOf(id: ChatId): string {
  return id.slice(0, id.indexOf('_'));
}

/** A chat id never holds a slash, so the pair can be read back. */
export function roomId(chatId: ChatId, threadId: string | null): RoomId {
  return threadId === null ? chatId : `${chatId}/${threadId}`;
}

export function roomParts(room: RoomId): { chatId: ChatId; threadId: string | null } {
  const slash = room.indexOf('/');
  return slash < 0
    ? { chatId: room, threadId: null }
    : { chatId: room.slice(0, slash), threadId: room.slice(slash + 1) };
}

/** What the platform calls it: the inverse of `platformId`. */
export function addressOf(id: ChatId): string {
  return decodeURIComponent(id.slice(id.indexOf('_') + 1));
}
