/**
 * Who gets what is said on the fake Telegram, and by which number. In a supergroup all bots call a message by one; in
 * private chats and basic groups each has numbers of its own. Bots do not get what bots say.
 */
import type { Payload } from './telegram-body.js';
import type { FakeBot } from './telegram-bots.js';
import { type Chat, chatOf, type Forwarded, messageOf, type Person, type Saying } from './telegram-chats.js';
import { origins } from './telegram-kinds.js';

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
  next(bot: FakeBot): number;
}

export function createTalk(main: () => FakeBot): Talk {
  const chats = new Map<number, Chat>();
  const told: Told[] = [];
  const last = new Map<FakeBot | 'all', number>();

  function chat(id: number): Chat {
    return chats.get(id) ?? { id, type: id > 0 ? 'private' : 'supergroup' };
  }

  /** The main bot counts as the supergroups do: most tests have no other. */
  function next(bot: FakeBot): number {
    const counter = bot === main() ? 'all' : bot;
    const number = (last.get(counter) ?? 0) + 1;
    last.set(counter, number);
    return number;
  }

  function numberFor(message: Told, bot: FakeBot): number {
    const shared = message.chat.type === 'supergroup';
    const known = shared ? [...message.numbers.values()][0] : message.numbers.get(bot);
    const number = known ?? next(shared ? main() : bot);
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

  /**
   * What a forward has beside who forwards it (`MessageOrigin`): whose words it holds, and these, with their entities and
   * files. What is forwarded once more is still the first one's.
   */
  function forwarded(forwards: Forwarded, bot: FakeBot): Payload {
    if ('origin' in forwards) return { forward_origin: forwards.origin };
    const original = find(main(), forwards.chatId, forwards.messageId)?.as(bot);
    if (original === undefined) throw new Error(`there is no message ${forwards.messageId} to forward`);
    const { message_id, from, sender_chat, chat: there, date, ...content } = original;
    for (const field of OF_ITS_PLACE) delete content[field];
    return { forward_origin: originOf(original, forwards.hides === true), ...content };
  }

  return {
    chat,
    next,

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
      const replied = find(saying.to ?? main(), where.id, saying.replyTo);
      const brought = new Map(bots.map((bot) => [bot, files(bot)]));
      const message: Told = {
        chat: where,
        numbers: new Map(saying.messageId === undefined ? [] : [[main(), saying.messageId]]),
        as: (bot) => ({
          ...messageOf(saying, numberFor(message, bot), replied?.as(bot)),
          ...brought.get(bot),
          ...(saying.forwards === undefined ? {} : forwarded(saying.forwards, bot)),
        }),
      };
      told.push(message);
      return new Map(bots.map((bot) => [bot, message.as(bot)]));
    },
  };
}

/** What a message has where it stands, and a forward of it has not. */
const OF_ITS_PLACE = [
  ...['reply_to_message', 'external_reply', 'quote', 'message_thread_id', 'is_topic_message'],
  ...['media_group_id', 'edit_date', 'reply_markup'],
];

function originOf({ from, sender_chat, chat, date }: Payload, hides: boolean): Payload {
  const person = from as Person;
  const group = sender_chat as Chat | undefined;
  if (group !== undefined) return origins.chat(group, Number(date));
  if ((chat as Chat).type === 'channel') return origins.channel(chat as Chat, 1, Number(date));
  const name = [person.first_name, person.last_name].filter(Boolean).join(' ');
  return hides ? origins.hiddenUser(name, Number(date)) : origins.user(person, Number(date));
}
