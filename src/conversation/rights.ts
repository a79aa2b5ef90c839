/** What somebody may do in a chat: asked for their commands (step 1), and for what their words lead to (step 5). */
import type { Permission } from '../core/access.js';
import type { ChatRecord } from '../core/chat-record.js';
import { addressOf, type ChatId } from '../core/ids.js';
import { isOwner } from './access.js';
import type { BaseServices } from './services.js';

/** Whoever gives a command or says something, and where. */
export interface Giver {
  chat: Pick<ChatRecord, 'id' | 'kind' | 'address'>;
  channel: string;
  sender: { id: ChatId; administrator: boolean };
}

export interface Rights {
  isOwner: boolean;
  /** Whether they may change things in the chat; asks the platform if necessary, which may not answer. */
  mayChange(): Promise<Permission>;
}

/** If the platform does not say by then who is an administrator, it is not known. */
const ASKING_MS = 5_000;

export async function rightsOf(services: BaseServices, giver: Giver): Promise<Rights> {
  const { chat, sender, channel } = giver;
  const standing = await services.store.approvalOf({ chatId: chat.id, senderId: sender.id });
  const owner = isOwner(services.rulesFor(channel), sender.id, standing);
  return { isOwner: owner, mayChange: async () => (owner ? 'yes' : administers(services, giver)) };
}

async function administers(
  { channels, clock, log }: BaseServices,
  { chat, sender, channel: name }: Giver,
): Promise<Permission> {
  if (sender.administrator) return 'yes';
  const channel = channels.get(name);
  if (!channel?.isAdministrator) return 'no';
  const late = new AbortController();
  try {
    const asked = channel
      .isAdministrator(chat.address, addressOf(sender.id))
      .then((isOne): Permission => (isOne ? 'yes' : 'no'));
    return await Promise.race([asked, clock.sleep(ASKING_MS, late.signal).then((): Permission => 'unknown')]);
  } catch (error) {
    log.warn({ err: error, chat: chat.id }, 'the platform did not say who administers a group');
    return 'unknown';
  } finally {
    late.abort();
  }
}
