/** Where records of turns lie: `data/replay/<chat_id>/<persona_id>/<start of the first>.turns.gz`. */
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

/** A file of records: gzip members, each one line of JSON. */
export const ENDING = '.turns.gz';

/** As names of files begin: they sort by it. */
export function nameAt(at: number): string {
  return new Date(at).toISOString().replaceAll(/[-:Z]/g, '');
}
