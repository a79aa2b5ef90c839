/** Characters in and out of files. */

import { join } from 'node:path';
import type { Cards } from '../core/cards.js';
import { type Exclusive, locks } from '../core/concurrency.js';
import { exportPersona } from './card-export.js';
import { type CardsOptions, importFile } from './card-import.js';
import { personaReader } from './personas.js';

export function createCards(options: CardsOptions): Cards {
  const { groupsDir, log, models } = options;
  const reader = personaReader(groupsDir, log, models);
  const shelf = { ...options, reader, library: join(groupsDir, 'personas') };
  // Two imports at once must not choose the same name.
  const alone: Exclusive = locks();
  return {
    import: (ask) => alone(ask.chatId ?? 'library', () => importFile(shelf, ask)),
    export: (chatId, name, as) => exportPersona(shelf, chatId, name, as),
  };
}
