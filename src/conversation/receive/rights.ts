/** Within step 1 of the route: which commands somebody may give in a chat. */
import type { ChatRecord } from '../../core/chat-record.js';
import { addressOf, type ChatId } from '../../core/ids.js';
import type { NewCommand } from '../../core/receipt.js';
import { isOwner } from '../access.js';
import { type Command, NOT_CHECKED, type Permission } from '../commands/command.js';
import type { Services } from '../services.js';

/** Whoever gives a command, and where. */
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

type RightsServices = Pick<Services, 'store' | 'rulesFor' | 'channels' | 'clock' | 'log'>;

/** If the platform does not say by then who is an administrator, it is not known. */
const ASKING_MS = 5_000;

export async function rightsOf(services: RightsServices, giver: Giver): Promise<Rights> {
  const { chat, sender, channel } = giver;
  const standing = await services.store.standing({ chatId: chat.id, senderId: sender.id });
  const owner = isOwner(services.rulesFor(channel), sender.id, standing);
  return { isOwner: owner, mayChange: async () => (owner ? 'yes' : administers(services, giver)) };
}

/** Why they may not give this command: one sentence for the chat; null where they may. */
export async function refusalOf(
  { ownersOnly, changes }: Command,
  { argument }: Pick<NewCommand, 'argument'>,
  { chat }: Pick<Giver, 'chat'>,
  rights: Rights,
): Promise<string | null> {
  if (ownersOnly && !rights.isOwner) return 'Only owners can do that.';
  if (chat.kind !== 'group' || !changes(argument)) return null;
  const permission = await rights.mayChange();
  if (permission === 'unknown') return NOT_CHECKED;
  return permission === 'no' ? 'Only owners and administrators of this group can do that.' : null;
}

async function administers(
  { channels, clock, log }: RightsServices,
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
