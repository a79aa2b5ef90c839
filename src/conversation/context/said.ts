/**
 * Step 4 of the route: where the window ends and what is said now begins. The messages that are answered stand last, and
 * what was overheard between and behind them stays where it was said: "should I delete it?", "wait, not that one", "so?".
 * In later windows the same lines stand in the same order. Pure.
 */
import type { PersonaId } from '../../core/ids.js';
import type { HeardMessage, StoredMessage } from '../../core/transcript.js';
import { albumsOf, asOne } from './history.js';

/** A message that was heard, or an album. */
export interface Behind {
  /** As it is shown. */
  message: HeardMessage;
  /** As they are stored: more than one of an album. */
  items: HeardMessage[];
}

/** What stands behind the window. */
export interface Said {
  message: StoredMessage;
  /** False: it was only overheard. */
  answered: boolean;
}

export function isAmong(batch: readonly StoredMessage[]): (heard: Behind) => boolean {
  const ids = new Set(batch.map(({ id }) => id));
  return ({ items }) => items.some(({ id }) => ids.has(id));
}

/** The index from which on what was heard stands with the batch. */
export function endOfWindow(
  heard: readonly Behind[],
  isOfBatch: (heard: Behind) => boolean,
  own: PersonaId,
): number {
  // A turn that was suspended goes on at the end, behind what was answered meanwhile.
  const closed = heard.findLastIndex((each) => {
    const { author, turnId } = each.message;
    if (isOfBatch(each)) return false;
    return author.kind === 'persona' ? author.id === own : turnId !== null;
  });
  const first = heard.findIndex((each, n) => n > closed && isOfBatch(each));
  return first < 0 ? heard.length : first;
}

/** All of the batch, also what of it the persona's window does not hold, and the others in their order. */
export function saidBehind(
  behind: readonly Behind[],
  batch: readonly StoredMessage[],
  isOfBatch: (heard: Behind) => boolean,
): Said[] {
  const said: Said[] = behind.map((each) => ({ message: each.message, answered: isOfBatch(each) }));
  const held = new Set(behind.flatMap(({ items }) => items.map(({ id }) => id)));
  for (const items of albumsOf(batch.filter(({ id }) => !held.has(id)))) {
    const message = asOne(items);
    const next = said.findIndex((each) => each.message.id > message.id);
    said.splice(next < 0 ? said.length : next, 0, { message, answered: true });
  }
  return said;
}
