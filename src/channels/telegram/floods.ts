/**
 * When a bot has to leave a chat alone: Telegram says for how long (`retry_after`), or shows it by holding a call back,
 * which it does itself while the wait is short. Whatever is done in the chat counts for its limits.
 */
import type { Clock } from '../../core/clock.js';
import type { Address } from '../../core/message.js';
import { bounded } from '../kit/bounded.js';

const MOST_CHATS = 10_000;
/** A call that took this long was held back: it is as long again until the next one. */
const SLOW_MS = 2_000;
/** Telegram holds nothing back for longer; an answer that took longer was only lost. */
const MOST_HELD_MS = 8_000;
/**
 * Telegram does not tell a chat's limit from the bot's. When two chats are refused one soon after the other, and until
 * about the same time, it is taken for the bot's, and all its chats wait.
 */
const TOGETHER_MS = 60_000;

export function createFloods(clock: Clock) {
  const closedUntil = bounded<Address, number>(MOST_CHATS);
  let allUntil = 0;
  let last: { chat: Address; at: number; until: number } | null = null;

  const close = (chat: Address, ms: number) => {
    closedUntil.set(chat, Math.max(closedUntil.get(chat) ?? 0, clock.now() + ms));
  };

  return {
    /** How long nothing may be done there, ms. */
    waitFor: (chat: Address): number =>
      Math.max(0, allUntil - clock.now(), (closedUntil.get(chat) ?? 0) - clock.now()),

    /** Telegram refused a call for so long. */
    refused(chat: Address, ms: number): void {
      const now = clock.now();
      close(chat, ms);
      const until = now + ms;
      const isTogether = (one: number, other: number) => Math.abs(one - other) < TOGETHER_MS;
      if (last !== null && last.chat !== chat && isTogether(now, last.at) && isTogether(until, last.until)) {
        allUntil = Math.max(allUntil, until);
      }
      last = { chat, at: now, until };
    },

    /** A call was answered after so long. */
    took(chat: Address, ms: number): void {
      if (ms >= SLOW_MS) close(chat, Math.min(ms, MOST_HELD_MS));
    },
  };
}
