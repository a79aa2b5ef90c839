/** `/memory`: shows and changes a persona's memory. Its larger verbs have files of their own. */
import type { OutgoingFile } from '../../core/channel.js';
import { changedLines, type MemoryOwner, netChanges, TIERS, type Version } from '../../core/memory.js';
import type { CommandEffect } from '../../core/store.js';
import { code, counted, oneLine, withFencesClosed, withoutBullet } from '../quoting.js';
import {
  activeHere,
  type ChatCommand,
  type CommandAnswer,
  type CommandCall,
  changing,
  firstOf,
  reading,
  withVerbs,
} from './command.js';
import { carryOut, endOf, forget, isErased } from './memory-forget.js';
import { holdsOutside, sourceOf } from './memory-lines.js';
import { why } from './memory-why.js';
import { verbAndRest } from './parse.js';

const TEXT = { name: 'text', description: 'The text to forget', required: true };

const verbs = withVerbs(
  {
    name: 'memory',
    aliases: [],
    description: 'Show, explain, forget, undo or export what I remember',
    audited: (argument) => verbAndRest(argument).verb,
  },
  [
    reading('show', 'Show what I remember here', show),
    reading(
      'why',
      'Show the memory behind my last answer, or where messages with certain words are now',
      why,
      { name: 'words', description: 'Find where messages with these words are now', required: false },
    ),
    changing('forget', 'Remove a text from memory, conversation and archives; I ask first', forget, TEXT),
    // A yes to `forget` runs this verb; typing it counts as a yes.
    { ...changing('yes', '', carryOut, TEXT), isHidden: true },
    // The other answer to `forget`.
    { ...changing('keep', '', async () => ({ text: 'Nothing was changed.' })), isHidden: true },
    // With a turn's id if a plain "undo" replies to a note about saved memory.
    changing('undo', 'Undo the last change of my memory', undo),
    // In a group, not everybody may request all the files at once.
    changing('export', 'Send the files of my memory', exportFiles),
  ],
);

export const memory: ChatCommand = {
  ...verbs,
  run: async (call) => (isErased(call.command) ? endOf(call) : verbs.run(call)),
};

const MOST_VERSIONS = 1_000;

/** The tiers and the recent daily log, cut as in the prompt. */
async function show(call: CommandCall): Promise<CommandAnswer> {
  const { memory, zone, clock } = call;
  const owner = activeHere(call.command);
  const today = zone.date(clock.now());
  // In prompts, unreadable files count as empty, but here the error must be reported. Both calls throw.
  await Promise.all([memory.readAll(owner), memory.readDaily(owner.chatId, today)]);
  const { text } = await memory.snapshot(owner);
  const dailyLog = await memory.recentDaily(owner.chatId, today);
  if (text === '' && dailyLog === '') return { text: 'I remember nothing here yet.' };
  const blocks = [
    text && withFencesClosed(text),
    dailyLog && `**Daily log of this chat**\n\n${withFencesClosed(dailyLog)}`,
    await fromOutside(call, owner, today),
    await lastNight(call, owner),
    'To get all of it as files: /memory export',
  ];
  return { text: blocks.filter((block) => block !== '').join('\n\n') };
}

/** Lists the places that were written after untrusted text had been read; empty if none. */
async function fromOutside(
  { store, memory }: CommandCall,
  owner: MemoryOwner,
  today: string,
): Promise<string> {
  const versions = await store.versions({ ...owner, personaId: null, most: MOST_VERSIONS });
  const file = `${owner.personaId}/MEMORY.md`;
  const texts = await Promise.all(TIERS.map((tier) => memory.readTier(owner, tier)));
  const tiers = TIERS.filter((tier, n) => holdsOutside(versions, file, tier, texts[n] ?? ''));
  const isInLog = versions.some(({ file, cause }) => cause.tainted && file === `memory/${today}.md`);
  const places = [...tiers.map((tier) => `tier ${tier}`), ...(isInLog ? ['the log of today'] : [])];
  if (places.length === 0) return '';
  return `Written after reading untrusted text: ${places.join(', ')}. /memory why shows what led to a line.`;
}

/** The last consolidation; empty if there was none or it was undone. */
async function lastNight({ store, zone }: CommandCall, owner: MemoryOwner): Promise<string> {
  const versions = await store.versions({ ...owner, most: MOST_VERSIONS });
  const night = versions.find(({ cause }) => cause.kind === 'night');
  if (!night) return '';
  const tiers = versions.filter(({ cause }) => cause.turnId === night.cause.turnId).map(({ tier }) => tier);
  const undo = versions[0] === night ? ' To undo that: /memory undo' : '';
  return `Consolidated at night, ${zone.time(night.at)}: tier ${tiers.sort().join(', ')}.${undo}`;
}

/** Maximum number of unwritten changes skipped. */
const MOST_OF_NIGHT = 20;
/** Maximum number of versions in one turn's change. */
const MOST_OF_TURN = 200;

/** Reverts the last change; repeated, the one before. With a turn's id, reverts all changes of that turn. */
async function undo(call: CommandCall, turnId: string): Promise<CommandAnswer> {
  if (turnId !== '') return undoTurn(call, turnId);
  const { memory, store, command } = call;
  const effects: CommandEffect[] = [];
  const versions = await store.versions({ ...activeHere(command), most: MOST_OF_NIGHT, ofPersonas: true });
  for (let change = newest(versions); change.length > 0; change = newest(versions)) {
    if (isForbidden(call, change)) return { text: OWNERS_CHANGE_TIER_1, effects };
    const [version] = versions.splice(0, change.length);
    if (version === undefined) break;
    // Read before any change, so that nothing can fail between the change and the answer.
    const source = await sourceOf(call, version, version.after);
    const outcome = await memory.takeBack(change);
    if (outcome === 'changed') {
      const text =
        `Nothing was undone: the text of my last change is gone, because the file was edited by hand since. ` +
        `My last change was of ${placesOf(change)} (${source}).`;
      return { text: withLines(text, change, 'It had added:', 'It had removed:'), effects };
    }
    effects.push(...undone(change));
    // On a retry, an earlier try may have done it. Otherwise the file never had the change: versions are stored first.
    if (outcome === 'done' || command.tries > 1) return { text: undoneText(change, ` (${source})`), effects };
  }
  return { text: 'There is no change of my memory to undo.', effects };
}

const OWNERS_CHANGE_TIER_1 = 'Nothing was undone: only owners change tier 1 here. Ask an owner to undo it.';

function isForbidden({ settings, isOwner }: CommandCall, change: Version[]): boolean {
  return settings.tier1By === 'owners' && !isOwner && change.some(({ tier }) => tier === 1);
}

/** The newest change: one version, or all versions of one night's consolidation. */
function newest(versions: Version[]): Version[] {
  const [first] = versions;
  if (first?.cause.kind !== 'night') return versions.slice(0, 1);
  const end = versions.findIndex(({ cause }) => cause.turnId !== first.cause.turnId);
  return versions.slice(0, end < 0 ? versions.length : end);
}

async function undoTurn(call: CommandCall, turnId: string): Promise<CommandAnswer> {
  const { memory, store, command } = call;
  const ask = { chatId: command.chat.id, personaId: null, most: MOST_OF_TURN, turnId, ofPersonas: true };
  const change = await store.versions(ask);
  if (change.length === 0) return { text: 'There is nothing left to undo.' };
  if (isForbidden(call, change)) return { text: OWNERS_CHANGE_TIER_1 };
  const outcome = await memory.takeBack(change);
  if (outcome === 'changed') {
    const text =
      `Nothing was undone: ${placesOf(change)} was changed again since, and undoing would lose that. ` +
      '/memory undo starts with the newest change.';
    return { text: withLines(text, change, 'It had added:', 'It had removed:') };
  }
  const effects = undone(change);
  if (outcome === 'already' && command.tries === 1)
    return { text: 'That is no longer in my memory, so there is nothing to undo.', effects };
  return { text: undoneText(change, ''), effects };
}

function undone(change: Version[]): CommandEffect[] {
  return change.map(({ id }) => ({ kind: 'undone', versionId: id }));
}

function undoneText(change: Version[], whence: string): string {
  const text = `Undone: the change of ${placesOf(change)}${whence}.`;
  return withLines(text, change, 'Removed:', 'Restored:');
}

/** Each place once, in the order of writing: `tier 1 of default/MEMORY.md`, `a line of memory/2026-11-22.md`. */
function placesOf(change: Version[]): string {
  const places = change.toReversed().map(({ tier, file }) => {
    return `${tier === null ? 'a line' : `tier ${tier}`} of ${code(file)}`;
  });
  return [...new Set(places)].join(', ');
}

/** With the added and removed lines of each version below, unless only order or white space changed. */
function withLines(text: string, change: Version[], cameTitle: string, wentTitle: string): string {
  const lists = netChanges(change).flatMap(({ before, after }) => {
    const { came, went } = changedLines(before, after);
    return [...listed(cameTitle, came), ...listed(wentTitle, went)];
  });
  return [text, ...lists].join('\n\n');
}

const MOST_LINES = 6;
const LINE_CHARS = 160;

function listed(title: string, lines: string[]): string[] {
  if (lines.length === 0) return [];
  const shown = lines.map((line) => `- ${code(oneLine(withoutBullet(line), LINE_CHARS))}`);
  return [[title, '', ...firstOf(shown, MOST_LINES, (left) => `- and ${left} more`)].join('\n')];
}

const MOST_FILES = 30;

async function exportFiles(call: CommandCall): Promise<CommandAnswer> {
  const { command, memory, archives } = call;
  const owner = activeHere(command);
  const reset = (await archives.list(owner.chatId, owner.personaId)).filter(({ reset }) => reset);
  // An archive that was reset counts as forgotten, even if the operator keeps the file.
  const forgotten = new Set(reset.map(({ file }) => `archive/${file}`));
  const files: OutgoingFile[] = [];
  let left = 0;
  for (const { file, path } of await memory.files(owner)) {
    if (forgotten.has(file)) continue;
    if (files.length === MOST_FILES) left++;
    else if (!(await isEmpty(call, owner, file))) files.push({ path, name: file.replaceAll('/', '-') });
  }
  if (files.length === 0) return { text: 'There are no files to send yet: I remember nothing here.' };
  const here = `Here ${files.length === 1 ? 'is' : 'are'} ${counted(files.length, 'file')}.`;
  const stay = left === 1 ? 'stays' : 'stay';
  const rest = `${counted(left, 'older file')} ${stay} in the folder \`groups/${owner.chatId}/\`.`;
  return { text: left === 0 ? here : `${here} ${rest}`, files };
}

/** True also for a MEMORY.md with nothing under its headings. Archives are never empty. */
async function isEmpty({ memory }: CommandCall, owner: MemoryOwner, file: string): Promise<boolean> {
  if (file === `${owner.personaId}/MEMORY.md`) {
    const whole = await memory.readAll(owner);
    return whole.trim() === '' || (await memory.snapshot(owner)).text === '';
  }
  const date = /^memory\/(.+)\.md$/.exec(file)?.[1];
  return date !== undefined && (await memory.readDaily(owner.chatId, date)) === '';
}
