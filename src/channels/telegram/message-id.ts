/**
 * Ids of messages as the rest of the gateway knows them. In a supergroup a message has the same number for every bot;
 * elsewhere each bot has numbers of its own: there, an id is the id of a persona's bot, a colon and the number. So in a
 * basic group several copies of a message reach us under ids that differ; what they have in common tells which are
 * copies of one. Pure, but for `numberCopies`.
 */
import { createHash } from 'node:crypto';
import type { Address, InboundEvent } from '../../core/message.js';
import { bounded } from '../kit/bounded.js';
import type { OurBot } from './bots.js';
import type { Message } from './update.js';

/** The ids of supergroups and channels are below this. */
const SHARED_BELOW = -1_000_000_000_000;
/** Of how many messages copies are recognised: they come within seconds. */
const MOST_COPIED = 1_000;

/**
 * The message's number, and which persona's bot has it: null for the main bot, and where all have the same. null for an
 * id that is none of a message (a button that was pressed).
 */
export function readMessageId(id: string): { bot: number | null; number: number } | null {
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

/** The id of a press on a button, among those of messages. */
export function pressIdOf(bot: Pick<OurBot, 'id' | 'personaId'>, { id }: { id: string }): string {
  return messageIdOf(bot, `press-${id}`);
}

/** Whether all bots have the same numbers for the messages of a chat. */
export function isShared(chat: Address | number): boolean {
  const id = Number(chat);
  // A public group or channel may be addressed by its name.
  return Number.isNaN(id) || id < SHARED_BELOW;
}

/** The id of a message that a bot was told of by that number. */
export function idOf(number: number, chat: { id: number }, bot: OurBot): string {
  return isShared(chat.id) ? String(number) : messageIdOf(bot, number);
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

/**
 * The same for all copies of a message, and for two messages that nothing but their numbers tells apart. `words`: what
 * it shows, whatever it is.
 */
export function copyKeyOf(message: Message, words: string, sender: string): string {
  const { chat, date, reply_to_message: replied, quote } = message;
  const { photo = [], voice, video, video_note, animation, audio, document, live_photo } = message;
  // The id of a file is another one for each bot, but not this one.
  const files = [...photo, voice, video, video_note, animation, audio, document, live_photo]
    .map((file) => file?.file_unique_id)
    .filter((id) => id !== undefined);
  const reply = replied && [replied.from?.id, replied.date, replied.text ?? replied.caption];
  const said = [words, files, quote?.text];
  return createHash('sha256')
    .update(JSON.stringify([chat.id, sender, date, said, reply ?? null]))
    .digest('base64url');
}

/**
 * Tells equal messages of one second apart: those of one bot are numbered in the order in which it got them. One that
 * it gets again keeps its number.
 */
export function numberCopies(): (event: InboundEvent) => InboundEvent {
  const idsByKey = bounded<string, string[]>(MOST_COPIED);
  return (event) => {
    if (event.kind !== 'message' || event.twin === undefined) return event;
    const { twin, platformMessageId } = event;
    const ids = idsByKey.get(twin) ?? [];
    if (!ids.includes(platformMessageId)) ids.push(platformMessageId);
    idsByKey.set(twin, ids);
    return { ...event, twin: `${twin}-${ids.indexOf(platformMessageId)}` };
  };
}
