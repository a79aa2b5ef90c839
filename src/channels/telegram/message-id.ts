/**
 * Ids of messages as the rest of the gateway knows them, made of the numbers that Telegram gives them. In a supergroup a
 * message has the same number for every bot; elsewhere each bot has numbers of its own: there, an id is the id of a
 * persona's bot, a colon and the number. And the newest of these numbers, as far as we were told: a bot's messages are
 * counted in one row over all its direct chats and basic groups, those of a supergroup in a row of its own, and they
 * only grow. From these, a send that was cut off is looked for (`find-sent.ts`).
 */
import type { Address } from '../../core/message.js';
import { bounded } from '../kit/bounded.js';
import type { Bots, OurBot } from './bots.js';

/** The ids of supergroups and channels are below this. */
const SHARED_BELOW = -1_000_000_000_000;
const MOST_GROUPS = 10_000;
/** A number this far below the newest is of another bot than before: only then a row begins anew. */
const ANOTHER_ROW = 1_000;

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

/** A message of ours, and when its send began. */
export interface Sent {
  number: number;
  begunAt: number;
}

/** What is known when a send begins; stored with it, as JSON. */
export interface SendMark {
  /** When it began, ms. */
  at: number;
  chat: Address;
  /** The newest number known, by the bot's id. */
  newest: [bot: number, number: number][];
}

export type Newest = ReturnType<typeof createNewest>;

export function createNewest(bots: Pick<Bots, 'all' | 'withId'>) {
  const ofBots = new Map<number, number>();
  const ofGroups = bounded<Address, number>(MOST_GROUPS);
  const lastSent = { ofBots: new Map<number, Sent>(), ofGroups: bounded<Address, Sent>(MOST_GROUPS) };

  function number({ id }: Pick<OurBot, 'id'>, chat: Address): number | undefined {
    return isShared(chat) ? ofGroups.get(chat) : ofBots.get(id);
  }

  function set({ id }: Pick<OurBot, 'id'>, chat: Address, newest: number): void {
    if (isShared(chat)) ofGroups.set(chat, newest);
    else ofBots.set(id, newest);
  }

  function learn(bot: Pick<OurBot, 'id'>, chat: Address, told: number): void {
    set(bot, chat, Math.max(told, number(bot, chat) ?? 0));
  }

  return {
    /** The newest number in the row that a bot's messages in a chat are counted in. */
    number,

    /** Our newest message in that row. */
    lastSent: ({ id }: Pick<OurBot, 'id'>, chat: Address): Sent | undefined =>
      isShared(chat) ? lastSent.ofGroups.get(chat) : lastSent.ofBots.get(id),

    /** Of a send that begins now; null when nothing is known. */
    mark(chat: Address, now: number): string | null {
      const newest = bots.all.flatMap((bot): SendMark['newest'] => {
        const known = number(bot.our(), chat);
        return known === undefined ? [] : [[bot.our().id, known]];
      });
      return newest.length === 0 ? null : JSON.stringify({ at: now, chat, newest } satisfies SendMark);
    },

    /** From the store. */
    recorded(address: Address, platformMessageId: string): void {
      const id = readMessageId(platformMessageId);
      const bot = id && bots.withId(id.bot);
      if (id && bot) learn(bot.our(), address, id.number);
    },

    /** From a bot's updates, whoever may have written them. */
    heard(bot: OurBot, updates: readonly unknown[]): void {
      for (const update of updates) {
        for (const { chat, number } of numbersIn(update)) learn(bot, String(chat), number);
      }
    },

    /** From a message that was sent. */
    sent(address: Address, platformMessageId: string, begunAt: number): void {
      const id = readMessageId(platformMessageId);
      const bot = id && bots.withId(id.bot)?.our();
      if (!id || !bot) return;
      if (id.number < (number(bot, address) ?? 0) - ANOTHER_ROW) set(bot, address, id.number);
      else learn(bot, address, id.number);
      const sent = { number: id.number, begunAt };
      if (isShared(address)) lastSent.ofGroups.set(address, sent);
      else lastSent.ofBots.set(bot.id, sent);
    },
  };
}

/** In an update of any kind: what it brings, and what that is about (the message of a button that was pressed). */
function numbersIn(update: unknown): { chat: number; number: number }[] {
  const brought = fieldsOf(update);
  return [...brought, ...brought.map((each) => Object(each).message)].flatMap((each) => {
    const { message_id: number, chat } = Object(each);
    const id: unknown = Object(chat).id;
    return typeof number === 'number' && typeof id === 'number' ? [{ chat: id, number }] : [];
  });
}

function fieldsOf(value: unknown): unknown[] {
  return typeof value === 'object' && value !== null ? Object.values(value) : [];
}
