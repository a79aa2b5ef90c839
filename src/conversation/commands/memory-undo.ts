/**
 * `/memory undo`: reverts the last change of a persona's memory; repeated, it reverts the one before. With the id of a
 * turn (what a plain `undo` becomes that replies to a note on what was saved) it reverts all that this turn changed.
 */

import { netChanges } from '../../core/changed-lines.js';
import type { Version } from '../../core/memory.js';
import type { CommandEffect } from '../../core/route-store.js';
import type { CommandAnswer, CommandCall, CommandServices } from './command.js';
import { activeHere } from './here.js';
import { describeChange, placeOf } from './memory-change.js';
import { sourceOf } from './memory-source.js';

/** How many changes that were never written are skipped at once, and how many versions one change has at most. */
const MOST_VERSIONS = 20;
const MOST_OF_TURN = 200;

export async function undo(
  { command, isOwner }: CommandCall,
  services: CommandServices,
  turnId: string,
): Promise<CommandAnswer> {
  const { memory, store, zone } = services;
  const owner = activeHere(command);
  const isForbidden = (change: Version[]) =>
    services.settings.tier1By === 'owners' && !isOwner && change.some(({ tier }) => tier === 1);
  if (turnId !== '') return undoTurn(command, services, turnId, isForbidden);
  const effects: CommandEffect[] = [];
  const versions = await store.versions({ ...owner, most: MOST_VERSIONS });
  for (let change = newest(versions); change.length > 0; change = newest(versions)) {
    if (isForbidden(change)) return { text: OWNERS_CHANGE_TIER_1, effects };
    const [version] = versions.splice(0, change.length);
    if (version === undefined) break;
    // Read before anything is changed, so that nothing can fail between the change and the answer.
    const source = await sourceOf(version, version.after, { store, zone });
    const outcome = await memory.takeBack(change);
    if (outcome === 'changed') return { text: refusal(change, source), effects };
    effects.push(...undone(change));
    // On a retry, a crash may have followed this undo's own write. Otherwise the change was never written: a version is
    // stored before its file is.
    if (outcome === 'done' || command.tries > 1) return { text: takenBack(change, source), effects };
  }
  return { text: 'There is no change of my memory to take back.', effects };
}

const OWNERS_CHANGE_TIER_1 =
  'Nothing was taken back: that change is of tier 1, which only owners change here.';

/** The newest change: one version, or all that one night's consolidation made. */
function newest(versions: Version[]): Version[] {
  const [first, ...others] = versions;
  if (first === undefined) return [];
  if (first.cause.kind !== 'night') return [first];
  const end = others.findIndex(({ cause }) => cause.turnId !== first.cause.turnId);
  return [first, ...others.slice(0, end < 0 ? others.length : end)];
}

async function undoTurn(
  { chat, tries }: CommandCall['command'],
  { memory, store }: CommandServices,
  turnId: string,
  isForbidden: (change: Version[]) => boolean,
): Promise<CommandAnswer> {
  const ask = { chatId: chat.id, personaId: null, most: MOST_OF_TURN, turnId };
  const change = await store.versions(ask);
  if (change.length === 0) return { text: 'Nothing is left of that to take back.' };
  if (isForbidden(change)) return { text: OWNERS_CHANGE_TIER_1 };
  const outcome = await memory.takeBack(change);
  if (outcome === 'changed') return { text: changedSince(change) };
  const effects = undone(change);
  if (outcome === 'already' && tries === 1)
    return { text: 'That does not stand in my memory any more.', effects };
  return { text: takenBack(change, null), effects };
}

function undone(change: Version[]): CommandEffect[] {
  return change.map(({ id }) => ({ kind: 'undone', versionId: id }));
}

function takenBack(change: Version[], source: string | null): string {
  const whence = source === null ? '' : ` (${source})`;
  const text = `Taken back: the change of ${placesOf(change)}${whence}.`;
  return [text, ...linesOf(change, { came: 'Gone again:', went: 'Back again:' })].join('\n\n');
}

const HAD = { came: 'It had added:', went: 'It had removed:' };

function refusal(change: Version[], source: string): string {
  const text =
    `Nothing was taken back: what my last change wrote does not stand there any more, for the file was edited by hand since. ` +
    `My last change was of ${placesOf(change)} (${source}).`;
  return [text, ...linesOf(change, HAD)].join('\n\n');
}

function changedSince(change: Version[]): string {
  const text =
    `Nothing was taken back: ${placesOf(change)} was changed again since, and that would be lost. ` +
    '/memory undo takes back the newest change first.';
  return [text, ...linesOf(change, HAD)].join('\n\n');
}

/** Each place once, those written first before the others. */
function placesOf(change: Version[]): string {
  return [...new Set(change.toReversed().map(placeOf))].join(', ');
}

function linesOf(change: Version[], titles: { came: string; went: string }): string[] {
  return netChanges(change)
    .map((each) => describeChange(each, titles))
    .filter((lines) => lines !== '');
}
