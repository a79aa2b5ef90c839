/** Where the record of a turn lies: `data/replay/<chat_id>/<persona_id>/<start time>-<turn_id>.json.gz`. */
import { join } from 'node:path';
import { nameOnDisk } from '../core/file-names.js';
import type { ChatId, PersonaId } from '../core/ids.js';

/** Throws for an invalid folder name: then the store was tampered with. */
export function folderOf(folder: string, chatId: ChatId, personaId: PersonaId | null): string {
  const names = personaId === null ? [chatId] : [chatId, personaId];
  const wrong = names.find((name) => !/^[^./\\\0][^/\\\0]*$/u.test(name));
  if (wrong !== undefined) throw new Error(`${JSON.stringify(wrong)} names no folder of records`);
  const chat = join(folder, chatId);
  return personaId === null ? chat : join(chat, nameOnDisk(chat, personaId));
}

export function endingOf(turnId: string): string {
  return `-${turnId}.json.gz`;
}
