/** `/memory undo`: reverts the last change of a persona's memory; repeated, it reverts the one before. */
import type { Version } from '../../core/memory.js';
import type { CommandEffect } from '../../core/route-store.js';
import type { CommandAnswer, CommandCall, CommandServices } from './command.js';
import { activeHere } from './here.js';
import { changedLines, placeOf } from './memory-change.js';
import { sourceOf } from './memory-source.js';

/** How many changes that were never written are skipped at once. */
const MOST_VERSIONS = 20;

export async function undo(
  { command }: CommandCall,
  { personas, memory, store, zone }: CommandServices,
): Promise<CommandAnswer> {
  const owner = await activeHere(command.chat, personas);
  const effects: CommandEffect[] = [];
  for (const version of await store.versions({ ...owner, most: MOST_VERSIONS })) {
    // Read before anything is changed, so that nothing can fail between the change and the answer.
    const source = await sourceOf(version, version.after, { store, zone });
    const outcome = await memory.takeBack(version);
    if (outcome === 'changed') return { text: refusal(version, source), effects };
    effects.push({ kind: 'undone', versionId: version.id });
    // On a retry, a crash may have followed this undo's own write. Otherwise the change was never written: a version is
    // stored before its file is.
    if (outcome === 'done' || command.tries > 1) return { text: takenBack(version, source), effects };
  }
  return { text: 'There is no change of my memory to take back.', effects };
}

function takenBack(version: Version, source: string): string {
  const lines = changedLines(version, { came: 'Gone again:', went: 'Back again:' });
  const text = `Taken back: the change of ${placeOf(version)} (${source}).`;
  return lines === '' ? text : `${text}\n\n${lines}`;
}

function refusal(version: Version, source: string): string {
  const lines = changedLines(version, { came: 'It had added:', went: 'It had removed:' });
  const text =
    `Nothing was taken back: what my last change wrote does not stand there any more, for the file was edited by hand since. ` +
    `My last change was of ${placeOf(version)} (${source}).`;
  return lines === '' ? text : `${text}\n\n${lines}`;
}
