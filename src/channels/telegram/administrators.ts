/** Who manages a group: asked of Telegram by the first of our bots that is in it, and remembered for a while. */
import type { Clock } from '../../core/clock.js';
import type { Address } from '../../core/message.js';
import { createLookupCache, isAdministrator } from '../kit/lookup-cache.js';
import type { Bots } from './bots.js';
import { isNotThere } from './failure.js';
import { chatId } from './outbound.js';

/** Of how many groups it is remembered. */
const MOST_GROUPS = 1_000;

/** Whether somebody is one of them. Rejects when Telegram cannot be asked. */
export function createAdministrators(
  { all: bots }: Bots,
  clock: Clock,
): (chat: Address, sender: Address) => Promise<boolean> {
  async function ask(chat: Address): Promise<Set<Address>> {
    const group = { chat_id: chatId(chat) };
    for (const [index, { api }] of bots.entries()) {
      try {
        const members = await api.call((raw, ended) => raw.getChatAdministrators(group, ended));
        return new Set(members.map((member) => String(member.user.id)));
      } catch (error) {
        if (index === bots.length - 1 || !isNotThere(api.failure(error))) throw error;
      }
    }
    return new Set();
  }

  const asked = createLookupCache(ask, { most: MOST_GROUPS, clock });
  return async (chat, sender) =>
    // Who posts as the group itself is an anonymous administrator of it.
    sender === chat || isAdministrator(asked, chat, (administrators) => administrators.has(sender));
}
