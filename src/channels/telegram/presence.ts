/**
 * Which of our bots are in which chats, as far as their calls and what they heard have shown. Remembered for some
 * minutes, so that not every message tries a bot that nobody has let in.
 */
import type { Clock } from '../../core/clock.js';
import type { Address } from '../../core/message.js';
import type { Bot } from './bot.js';

const ABSENT_MS = 300_000;
const MOST_CHATS = 10_000;

export interface Presence {
  /** It is there, and was the last that somebody spoke to. */
  heard(bot: Bot, chat: Address): void;
  /** It was not let say anything there. */
  absent(bot: Bot, chat: Address): void;
  isAbsent(bot: Bot, chat: Address): boolean;
  lastToHear(chat: Address): Bot | undefined;
}

export function createPresence(clock: Clock): Presence {
  const absentUntil = new Map<Address, Map<Bot, number>>();
  const lastToHear = new Map<Address, Bot>();

  return {
    heard(bot, chat) {
      absentUntil.get(chat)?.delete(bot);
      remember(lastToHear, chat, bot);
    },
    absent(bot, chat) {
      const there = absentUntil.get(chat) ?? new Map<Bot, number>();
      there.set(bot, clock.now() + ABSENT_MS);
      remember(absentUntil, chat, there);
    },
    isAbsent: (bot, chat) => (absentUntil.get(chat)?.get(bot) ?? 0) > clock.now(),
    lastToHear: (chat) => lastToHear.get(chat),
  };
}

function remember<Value>(map: Map<Address, Value>, chat: Address, value: Value): void {
  map.delete(chat);
  map.set(chat, value);
  for (const oldest of map.keys()) {
    if (map.size <= MOST_CHATS) break;
    map.delete(oldest);
  }
}
