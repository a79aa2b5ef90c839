/** Memory follows the version of an answer that is shown (docs/decisions/0066). Repeated after a crash, it changes nothing more. */

import type { ChatId } from '../core/ids.js';
import type { Version } from '../core/memory.js';

import { code } from './quoting.js';
import type { BaseServices } from './services.js';

const MOST_OF_TURN = 200;

/** Takes back the changes of turns that hold no more, then restores those that hold again. A sentence if it could not. */
export async function keepMemory(
  services: BaseServices,
  chatId: ChatId,
  { held, memory: holds }: { held: string[]; memory: string[] },
): Promise<string | null> {
  const { store, memory } = services;
  const whose = { chatId, personaId: null, most: MOST_OF_TURN, ofPersonas: true };
  const left: Version[] = [];
  const turn = async (undone: boolean, turnIds: string[]) => {
    for (const turnId of turnIds) {
      const change = await store.versions({ ...whose, turnId, undone });
      if (change.length === 0) continue;
      const outcome = await (undone ? memory.restore(change) : memory.takeBack(change));
      if (outcome === 'changed') left.push(...change);
      else
        await store.markUndone(
          change.map(({ id }) => id),
          !undone,
        );
    }
  };
  await turn(
    false,
    held.filter((id) => !holds.includes(id)),
  );
  await turn(true, holds.filter((id) => !held.includes(id)).toReversed());
  const files = [...new Set(left.map(({ file }) => code(file)))].join(', ');
  return left.length === 0 ? null : `${files} was changed since, so what it says there stays.`;
}
