/** Who manages a group, asked of Telegram and remembered for some minutes; a no only for seconds. */
import type { Clock } from '../../core/clock.js';
import type { Address } from '../../core/message.js';
import type { Bot } from './bot.js';
import { isNotThere } from './failure.js';
import { chatId } from './outbound.js';

const KEPT_MS = 300_000;
/** Somebody may just have been made one. */
const NO_KEPT_MS = 3_000;
const MOST_CHATS = 1_000;

export interface Administrators {
  /** Throws when Telegram cannot be asked. */
  has(chat: Address, sender: Address): Promise<boolean>;
}

export function createAdministrators(bots: readonly Bot[], clock: Clock): Administrators {
  const known = new Map<Address, { askedAt: number; senders: Set<Address> }>();

  /** Asks the first of our bots that is in the group. */
  async function managers(chat: Address): Promise<string[]> {
    for (const [index, { api }] of bots.entries()) {
      try {
        const members = await api.call((raw, ended) =>
          raw.getChatAdministrators({ chat_id: chatId(chat) }, ended),
        );
        return members.map((member) => String(member.user.id));
      } catch (error) {
        if (index === bots.length - 1 || !isNotThere(api.failure(error))) throw error;
      }
    }
    return [];
  }

  return {
    async has(chat, sender) {
      // Who posts as the group itself is an anonymous administrator of it.
      if (sender === chat) return true;
      const kept = known.get(chat);
      const age = kept === undefined ? Number.POSITIVE_INFINITY : clock.now() - kept.askedAt;
      if (age < KEPT_MS && kept?.senders.has(sender)) return true;
      if (age < NO_KEPT_MS) return false;
      const senders = new Set(await managers(chat));
      known.delete(chat);
      known.set(chat, { askedAt: clock.now(), senders });
      for (const oldest of known.keys()) {
        if (known.size <= MOST_CHATS) break;
        known.delete(oldest);
      }
      return senders.has(sender);
    },
  };
}
