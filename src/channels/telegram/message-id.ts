/**
 * Ids of messages as the rest of the gateway knows them. In a supergroup a message has the same number for every bot;
 * elsewhere each bot has numbers of its own: there, an id is the id of a persona's bot, a colon and the number. Pure.
 */
import type { Address } from '../../core/message.js';
import type { OurBot } from './mentions.js';

/** The ids of supergroups and channels are below this. */
const SHARED_BELOW = -1_000_000_000_000;

interface MessageId {
  /** The persona's bot that has this number for it; null for the main bot, and where all have the same. */
  bot: number | null;
  number: number;
}

/** null for an id that is none of a message (a button that was pressed). */
export function readMessageId(id: string): MessageId | null {
  const [, bot, number] = /^(?:(\d{1,15}):)?(-?\d{1,15})$/.exec(id) ?? [];
  if (number === undefined) return null;
  return { bot: bot === undefined ? null : Number(bot), number: Number(number) };
}

/** The id of a message that one of our bots knows by that number. */
export function messageIdOf(
  { id, personaId }: Pick<OurBot, 'id' | 'personaId'>,
  number: number | string,
): string {
  return personaId === undefined ? String(number) : `${id}:${number}`;
}

/** Whether all bots have the same numbers for the messages of a chat. */
export function isShared(chat: Address): boolean {
  const id = Number(chat);
  // A public group or channel may be addressed by its name.
  return Number.isNaN(id) || id < SHARED_BELOW;
}

/** The message's number to one bot in a chat; null where that bot does not know it. */
export function numberFor(
  { id, personaId }: Pick<OurBot, 'id' | 'personaId'>,
  chat: Address,
  messageId: string,
): number | null {
  const read = readMessageId(messageId);
  if (read === null) return null;
  const own = personaId === undefined ? null : id;
  return read.bot === own || isShared(chat) ? read.number : null;
}

/** The bot in the id of a file, which only the bot that received it may fetch, and the file's id for that bot. */
export function readFileId(source: string): { bot: number | null; file: string } {
  const [, bot, file] = /^(\d{1,15}):(.*)$/s.exec(source) ?? [];
  return bot === undefined || file === undefined ? { bot: null, file: source } : { bot: Number(bot), file };
}
