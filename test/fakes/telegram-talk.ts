/**
 * Who gets what is said on the fake Telegram, and by which number. In a supergroup all bots call a message by one, from
 * one counter for each supergroup; in private chats and basic groups each account has numbers of its own, from one
 * counter over all of them (reality.md 3.7). Bots do not get what bots say.
 */
import type { Payload } from './telegram-body.js';
import type { FakeBot } from './telegram-bots.js';
import { type Chat, chatOf, messageOf, type Saying } from './telegram-chats.js';

/** One message, whoever wrote it. */
interface Told {
  chat: Chat;
  numbers: Map<FakeBot, number>;
  as(bot: FakeBot): Payload;
}

export interface Talk {
  chat(id: number): Chat;
  /** A bot's message; its number to that bot. */
  wrote(bot: FakeBot, chatId: number, shown: (messageId: number) => Payload): number;
  /** A person's message, as each of the bots gets it. */
  said(saying: Saying, bots: FakeBot[], files: (bot: FakeBot) => Payload): Map<FakeBot, Payload>;
  /** A number for something that is no message to reply to. */
  next(bot: FakeBot, chatId: number): number;
  /** Whether there is such a message in a chat, whoever wrote it. */
  has(bot: FakeBot, chatId: number, number: number): boolean;
}

export function createTalk(main: () => FakeBot): Talk {
  const chats = new Map<number, Chat>();
  const told: Told[] = [];
  /** The newest number by its counter: an account's, or a supergroup's. */
  const last = new Map<FakeBot | number, number>();

  function chat(id: number): Chat {
    return chats.get(id) ?? { id, type: id > 0 ? 'private' : 'supergroup' };
  }

  const counterOf = (bot: FakeBot, { id, type }: Chat) => (type === 'supergroup' ? id : bot);

  function next(counter: FakeBot | number): number {
    const number = (last.get(counter) ?? 0) + 1;
    last.set(counter, number);
    return number;
  }

  function numberFor(message: Told, bot: FakeBot): number {
    const shared = message.chat.type === 'supergroup';
    const known = shared ? [...message.numbers.values()][0] : message.numbers.get(bot);
    const number = known ?? next(counterOf(bot, message.chat));
    message.numbers.set(bot, number);
    return number;
  }

  function find(bot: FakeBot, chatId: number, number: number | undefined): Told | undefined {
    if (number === undefined) return undefined;
    return told.find(
      (one) =>
        one.chat.id === chatId &&
        (one.chat.type === 'supergroup' || one.numbers.has(bot)) &&
        numberFor(one, bot) === number,
    );
  }

  return {
    chat,
    next: (bot, chatId) => next(counterOf(bot, chat(chatId))),
    has: (bot, chatId, number) => find(bot, chatId, number) !== undefined,

    wrote(bot, chatId, shown) {
      const message: Told = {
        chat: chat(chatId),
        numbers: new Map(),
        as: (reader) => shown(numberFor(message, reader)),
      };
      told.push(message);
      return numberFor(message, bot);
    },

    said(given, bots, files) {
      const saying = { date: Math.floor(Date.now() / 1000), ...given };
      const where = chatOf(saying);
      chats.set(where.id, where);
      if (saying.messageId !== undefined) {
        const counter = counterOf(main(), where);
        last.set(counter, Math.max(last.get(counter) ?? 0, saying.messageId));
      }
      const replied = find(saying.to ?? main(), where.id, saying.replyTo);
      const brought = new Map(bots.map((bot) => [bot, files(bot)]));
      const message: Told = {
        chat: where,
        numbers: new Map(saying.messageId === undefined ? [] : [[main(), saying.messageId]]),
        as: (bot) => ({
          ...messageOf(saying, numberFor(message, bot), replied?.as(bot)),
          ...brought.get(bot),
        }),
      };
      told.push(message);
      return new Map(bots.map((bot) => [bot, message.as(bot)]));
    },
  };
}
