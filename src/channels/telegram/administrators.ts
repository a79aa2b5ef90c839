/** Who manages a group, asked of Telegram and remembered for some minutes. */
import type { Clock } from '../../core/clock.js';
import type { Address } from '../../core/message.js';
import type { BotApi } from './api.js';
import { chatId } from './outbound.js';

const KEPT_MS = 300_000;
const MOST_CHATS = 1_000;

export interface Administrators {
  /** Throws when Telegram cannot be asked. */
  has(chat: Address, sender: Address): Promise<boolean>;
}

export function createAdministrators(api: BotApi, clock: Clock): Administrators {
  const known = new Map<Address, { until: number; senders: Set<Address> }>();

  return {
    async has(chat, sender) {
      // Who posts as the group itself is an anonymous administrator of it.
      if (sender === chat) return true;
      const kept = known.get(chat);
      if (kept !== undefined && kept.until > clock.now()) return kept.senders.has(sender);
      const members = await api.call((raw, ended) =>
        raw.getChatAdministrators({ chat_id: chatId(chat) }, ended),
      );
      const senders = new Set(members.map((member) => String(member.user.id)));
      known.delete(chat);
      known.set(chat, { until: clock.now() + KEPT_MS, senders });
      for (const oldest of known.keys()) {
        if (known.size <= MOST_CHATS) break;
        known.delete(oldest);
      }
      return senders.has(sender);
    },
  };
}
