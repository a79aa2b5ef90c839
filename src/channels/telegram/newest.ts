/**
 * The newest numbers that messages have, as far as we were told. Telegram counts the messages of a bot in one row over
 * all its direct chats and basic groups, and those of a supergroup in a row of its own; numbers only grow.
 */
import type { Address } from '../../core/message.js';
import { bounded } from '../kit/bounded.js';
import type { Bots, OurBot } from './bots.js';
import { isShared, readMessageId } from './message-id.js';

/** A message of ours, and when its send began. */
export interface Sent {
  number: number;
  begunAt: number;
}

export type Newest = ReturnType<typeof createNewest>;

const MOST_GROUPS = 10_000;
/** A number this far below the newest is of another bot than before: only then a row begins anew. */
const ANOTHER_ROW = 1_000;

export function createNewest(bots: Pick<Bots, 'withId'>) {
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
