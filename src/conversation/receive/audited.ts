/** Within step 1 of the route: enters a command in the audit log before it runs, if it changes something or is for owners. */
import type { Audit } from '../../core/journal.js';
import type { StoredCommand } from '../../core/receipt.js';
import type { ChatCommand } from '../commands/command.js';

/** Rejects where what only owners may do cannot be entered: it is then not done. */
export async function enterCommand(
  audit: Audit,
  { name, ownersOnly, changes, audited }: ChatCommand,
  { argument, chat, sender }: Pick<StoredCommand, 'argument' | 'chat' | 'sender'>,
): Promise<void> {
  if (audited === null || !(ownersOnly || changes(argument))) return;
  const what = `/${name} ${audited?.(argument) ?? ''}`.trim();
  const entry = { kind: 'command', who: sender.id, where: chat.id, what, word: sender.id } as const;
  await (ownersOnly ? audit.record(entry) : audit.note(entry));
}
