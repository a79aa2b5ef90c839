/** Characters in and out of files. */

import { join } from 'node:path';
import type { Cards, ImportAsk } from '../core/cards.js';
import { locks } from '../core/concurrency.js';
import { exportPersona } from './card-export.js';
import { type CardsOptions, importFile } from './card-import.js';
import { chatFolder, lockOf } from './paths.js';
import { personaReader } from './personas.js';

export function createCards(options: CardsOptions): Cards {
  const { groupsDir, log, models } = options;
  const reader = personaReader(groupsDir, log, models);
  const shelf = { ...options, reader, library: join(groupsDir, 'personas') };
  const { exclusive = locks() } = options;
  const folderOf = ({ chatId }: ImportAsk) =>
    chatId === null ? shelf.library : chatFolder(groupsDir, chatId);
  return {
    // Two imports at once must not choose the same name.
    import: (ask) => exclusive(lockOf(folderOf(ask)), () => importFile(shelf, ask)),
    export: (chatId, name, as) => exportPersona(shelf, chatId, name, as),
  };
}
