/**
 * Flood control of the fake Telegram. The server holds a call back itself while the wait is short (for bots 8 s in all),
 * and answers 429 only beyond (td's NetQueryDispatcher and NetQueryCreator); its limits are for everything that is done
 * in a chat, whatever the method. Whoever goes on calling during a wait is noted: no test may end like that.
 */
import type { Clock } from '../../src/core/clock.js';

interface Limits {
  /** What is done in one chat in a second, and at once; more is a flood. */
  perChatPerSecond: number;
  /** How long the server holds a call back, ms. */
  mostHeldMs: number;
}

interface Refusal {
  status: 429;
  description: string;
  parameters: { retry_after: number };
}

export interface Floods {
  /** Calls that came during a wait. */
  hurried: string[];
  /** How long a call is held back, and how it is refused after that; null where it is not. */
  admit(bot: number, method: string, chatId: number): { heldMs: number; refusal: Refusal | null };
  /** A 429 was answered: from now on it is waited. */
  refused(bot: number, chatId: number, seconds: number): void;
}

/** What was on its way when the 429 was written is nobody's fault. */
const ON_ITS_WAY_MS = 50;

export function createFloods(limits: Limits, clock: Clock): Floods {
  const hurried: string[] = [];
  const fullAt = new Map<string, number>();
  const waits = new Map<string, { from: number; until: number }>();

  function refusalOf(ms: number): Refusal {
    const retry_after = Math.max(1, Math.ceil(ms / 1000));
    const description = `Too Many Requests: retry after ${retry_after}`;
    return { status: 429, description, parameters: { retry_after } };
  }

  return {
    hurried,

    admit(bot, method, chatId) {
      const key = `${bot}/${chatId}`;
      const now = clock.now();
      const wait = waits.get(key);
      if (wait !== undefined && now < wait.until) {
        if (now > wait.from + ON_ITS_WAY_MS) hurried.push(`${method} in ${chatId}`);
        return { heldMs: 0, refusal: refusalOf(wait.until - now) };
      }
      const { perChatPerSecond, mostHeldMs } = limits;
      if (!Number.isFinite(perChatPerSecond)) return { heldMs: 0, refusal: null };
      const interval = 1000 / perChatPerSecond;
      const full = Math.max(fullAt.get(key) ?? 0, now);
      const atOnce = Math.max(1, perChatPerSecond);
      const heldMs = Math.max(0, full - (atOnce - 1) * interval - now);
      if (heldMs > mostHeldMs) return { heldMs: mostHeldMs, refusal: refusalOf(heldMs) };
      fullAt.set(key, full + interval);
      return { heldMs, refusal: null };
    },

    refused(bot, chatId, seconds) {
      const now = clock.now();
      waits.set(`${bot}/${chatId}`, { from: now, until: now + seconds * 1000 });
    },
  };
}
