/**
 * Which of our bots are in which chats, as far as their calls and what they received have shown. Remembered for some
 * minutes, so that not every message is first tried by a bot that is not in the chat.
 */
import type { Clock } from '../../core/clock.js';
import type { Address } from '../../core/message.js';
import { bounded } from '../kit/bounded.js';
import type { Bot } from './bots.js';

const ABSENT_MS = 300_000;
const MOST_CHATS = 10_000;

export interface Presence {
  /** It is there, and was the last that somebody spoke to. */
  heard(bot: Bot, chat: Address): void;
  /** It was not allowed to say anything there. */
  absent(bot: Bot, chat: Address): void;
  isAbsent(bot: Bot, chat: Address): boolean;
  lastToHear(chat: Address): Bot | undefined;
}

export function createPresence(clock: Clock): Presence {
  const absentUntil = bounded<Address, Map<Bot, number>>(MOST_CHATS);
  const lastToHear = bounded<Address, Bot>(MOST_CHATS);

  return {
    heard(bot, chat) {
      absentUntil.get(chat)?.delete(bot);
      lastToHear.set(chat, bot);
    },
    absent(bot, chat) {
      const bots = absentUntil.get(chat) ?? new Map<Bot, number>();
      bots.set(bot, clock.now() + ABSENT_MS);
      absentUntil.set(chat, bots);
    },
    isAbsent: (bot, chat) => (absentUntil.get(chat)?.get(bot) ?? 0) > clock.now(),
    lastToHear: lastToHear.get,
  };
}
