/** Who manages a group: Telegram is asked by the first of our bots that is in it. */
import type { Address } from '../../core/message.js';
import type { Bot } from './bots.js';
import { isNotThere } from './failure.js';
import { chatId } from './outbound.js';

/** Rejects when Telegram cannot be asked. */
export async function administratorsOf(chat: Address, bots: readonly Bot[]): Promise<Set<Address>> {
  for (const [index, { api }] of bots.entries()) {
    try {
      const members = await api.call((raw, ended) =>
        raw.getChatAdministrators({ chat_id: chatId(chat) }, ended),
      );
      return new Set(members.map((member) => String(member.user.id)));
    } catch (error) {
      if (index === bots.length - 1 || !isNotThere(api.failure(error))) throw error;
    }
  }
  return new Set();
}
