/** The verbs of one persona's view, with what most tests leave alone; each acts on the view as it stands. */

import type { Store } from '../../../src/core/store.js';
import type { Position, SeenView } from '../../../src/core/transcript.js';
import { CHAT, NOW, placeOf } from './words.js';

export const ARCHIVE = '2026-01-15T12-00-00-default.md';

export function oneView(store: Store, room = CHAT, personaId = 'default') {
  const view = () => store.view(room, personaId);
  return {
    view,
    place: (text: string) => placeOf(store, text, { room, personaId }),
    async flush(to: Position, seen?: SeenView): Promise<boolean> {
      return store.commitFlush({ view: seen ?? (await view()), to, usage: null, now: NOW });
    },
    async move(to: Position, more: Partial<Parameters<Store['moveWindow']>[0]> = {}): Promise<boolean> {
      const given = { summary: 'what was', archive: null, usage: null, now: NOW };
      return store.moveWindow({ view: await view(), to, ...given, ...more });
    },
    archive: (after: Position, to: Position, file = ARCHIVE) =>
      store.noteArchive({ chatId: CHAT, room, personaId, file, after, to, state: 'writing' }),
    open: async () =>
      (await store.openArchives({ channels: ['test'] })).map(({ file, state }) => `${file} ${state}`),
  };
}
