/**
 * What of a conversation lies beside the store and the files of groups, and goes with it when it is forgotten: what turns
 * saw, as recorded for `coterie replay`, and exports that wait to be sent.
 */
import type { ChatId, PersonaId } from '../core/ids.js';
import type { BaseServices } from './services.js';

/** A persona's part of a chat; null: all of it. Rejects where something could not be removed. */
export async function forgetCopies(
  { records, exports }: BaseServices,
  chatId: ChatId,
  personaId: PersonaId | null,
): Promise<void> {
  await records.forget(chatId, personaId);
  await exports.forget(chatId);
}
