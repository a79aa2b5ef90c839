/** Within step 1 of the route: which commands somebody may give in a chat. */
import type { NewCommand } from '../../core/receipt.js';
import { type ChatCommand, NOT_CHECKED } from '../commands/command.js';
import type { Giver, Rights } from '../rights.js';

/** Why they may not give this command: one sentence for the chat; null where they may. */
export async function refusalOf(
  { ownersOnly, changes }: ChatCommand,
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
