/** The bots that one fake Telegram hosts: each with a token, updates of its own, and chats that it is let into. */
import type { Clock } from '../../src/core/clock.js';
import type { Payload } from './telegram-body.js';
import type { Chat } from './telegram-chats.js';
import { type Answers, createUpdateQueue, type UpdateQueue } from './telegram-queue.js';

export interface FakeBot {
  token: string;
  id: number;
  username: string;
  /** What getMe says. */
  me: Payload & { id: number; username: string };
  /** In groups it gets only commands, what names it and replies to it. */
  privacy: boolean;
  updates: UpdateQueue;
  polls: { count: number; lastPayload: Payload };
}

export interface BotOptions {
  token: string;
  id: number;
  username: string;
  privacy?: boolean;
  /** Over what getMe says otherwise. */
  me?: Payload;
}

interface Bots {
  all: FakeBot[];
  add(options: BotOptions): FakeBot;
  withToken(token: string): FakeBot | undefined;
  /** From now on it is in a chat, or is thrown out of it (blocked, in a private one). */
  join(bot: FakeBot, chatId: number): void;
  leave(bot: FakeBot, chatId: number): void;
  /** How Telegram refuses a bot that may not speak there; null where it may. */
  refusalFor(bot: FakeBot, chat: Chat): { status: number; description: string } | null;
}

/** The first bot is in every chat unless it leaves; the others are in those that they join. */
export function createFakeBots(answers: Answers, webhookRetryMs: number, clock: Clock): Bots {
  const all: FakeBot[] = [];
  const joined = new Map<string, boolean>();
  const place = (bot: FakeBot, chatId: number) => `${bot.id}/${chatId}`;

  return {
    all,
    add({ token, id, username, privacy = false, me = {} }) {
      const flags = { can_join_groups: true, can_read_all_group_messages: !privacy };
      const said = { id, is_bot: true, first_name: username, username, ...flags, ...me };
      const bot: FakeBot = {
        ...{ token, id: said.id, username: said.username, me: said, privacy },
        updates: createUpdateQueue(answers, webhookRetryMs, clock),
        polls: { count: 0, lastPayload: {} },
      };
      all.push(bot);
      return bot;
    },
    withToken: (token) => all.find((bot) => bot.token === token),
    join: (bot, chatId) => void joined.set(place(bot, chatId), true),
    leave: (bot, chatId) => void joined.set(place(bot, chatId), false),

    refusalFor(bot, { id, type }) {
      const here = joined.get(place(bot, id));
      if (here ?? bot === all[0]) return null;
      if (type === 'private') {
        const why =
          here === false ? 'bot was blocked by the user' : "bot can't initiate conversation with a user";
        return { status: 403, description: `Forbidden: ${why}` };
      }
      return here === false
        ? { status: 403, description: `Forbidden: bot was kicked from the ${type} chat` }
        : { status: 400, description: 'Bad Request: chat not found' };
    },
  };
}
