/** `/memory`: lets users see and change what a persona remembers. Dispatches each verb to its file. */

import {
  changedLines,
  type Memory,
  type MemoryFile,
  type MemoryOwner,
  netChanges,
  type Tier,
  type Version,
} from '../../core/memory.js';
import type { CommandEffect } from '../../core/route-store.js';
import { code, counted, oneLine, withFencesClosed, withoutBullet } from '../quoting.js';
import {
  activeHere,
  type Command,
  type CommandAnswer,
  type CommandCall,
  type CommandServices,
} from './command.js';
import { carryOut, endOf, forget, isErased } from './memory-forget.js';
import { holdsOutside, OUTSIDE, sourceOf } from './memory-lines.js';
import { why } from './memory-why.js';
import { verbAndRest } from './parse.js';

const USAGE = [
  'Usage:',
  '/memory — show what I remember here',
  '/memory why — show what my last answer was given: what I remember, recalled and searched, and where it comes from',
  '/memory why WORDS — say where the messages with these words went',
  '/memory forget TEXT — remove a text from memory, conversation and archives; I show what would go and ask first',
  '/memory undo — take back the last change of my memory',
  '/memory export — send the files of my memory',
].join('\n');

type Verb = (call: CommandCall, services: CommandServices, rest: string) => Promise<CommandAnswer>;

const VERBS: Record<string, { run: Verb; changes: boolean }> = {
  show: { run: show, changes: false },
  why: { run: why, changes: false },
  forget: { run: forget, changes: true },
  // The command that a yes to `forget` becomes; typing it counts as a yes.
  yes: { run: carryOut, changes: true },
  // The other answer to `forget`.
  keep: { run: async () => ({ text: 'All stays as it is.' }), changes: true },
  // With a turn's id: what a plain undo becomes that replies to a note on what was saved.
  undo: { run: undo, changes: true },
  // In a group, not everybody should be able to request all the files at once.
  export: { run: exportFiles, changes: true },
};

export const memory: Command = {
  name: 'memory',
  aliases: [],
  description: 'Show, explain, forget, undo or export what I remember',
  verbs: [
    { name: 'show', description: 'Show what I remember here' },
    {
      name: 'why',
      description: 'What my last answer was given to remember, and where it comes from',
      rest: { name: 'words', description: 'Where the messages with these words went', required: false },
    },
    {
      name: 'forget',
      description: 'Remove a text from memory, conversation and archives; I ask first',
      rest: { name: 'text', description: 'What is to be forgotten', required: true },
    },
    { name: 'undo', description: 'Take back the last change of my memory' },
    { name: 'export', description: 'Send the files of my memory' },
  ],
  changes: (argument) => verbOf(argument)?.changes ?? false,
  audited: (argument) => verbAndRest(argument).verb,
  async run(call, services) {
    if (isErased(call.command)) return endOf(call, services);
    const verb = verbOf(call.command.argument);
    return verb ? verb.run(call, services, verbAndRest(call.command.argument).rest) : { text: USAGE };
  },
};

function verbOf(argument: string): { run: Verb; changes: boolean } | undefined {
  const { verb, rest } = verbAndRest(argument);
  if (verb === '') return VERBS.show;
  if (rest === '' && (verb === 'forget' || verb === 'yes')) return undefined;
  return Object.hasOwn(VERBS, verb) ? VERBS[verb] : undefined;
}

// `/memory` and `/memory show`: the tiers and the recent daily log, cut as in the prompt, and what the last nightly
// consolidation changed of them.

/** How far back a consolidation is looked for. */
const MOST_VERSIONS = 1_000;
const TIERS: readonly Tier[] = [1, 2, 3];

async function show({ command }: CommandCall, services: CommandServices): Promise<CommandAnswer> {
  const { memory, zone, clock } = services;
  const owner = activeHere(command);
  const today = zone.date(clock.now());
  // In a prompt, unreadable files count as empty; a person who asks must be told instead. Both of these throw.
  await Promise.all([memory.readAll(owner), memory.readDaily(owner.chatId, today)]);
  const { text } = await memory.snapshot(owner);
  const dailyLog = await memory.recentDaily(owner.chatId, today);
  if (text === '' && dailyLog === '') return { text: 'I remember nothing here yet.' };
  const blocks = [
    text && withFencesClosed(text),
    dailyLog && `**Daily log of this chat**\n\n${withFencesClosed(dailyLog)}`,
    await fromOutside(services, owner, today),
    await lastNight(services, owner),
    'All of it, as files: /memory export',
  ];
  return { text: blocks.filter((block) => block !== '').join('\n\n') };
}

/** Which of what is shown was written after words from outside had been read; empty for none. */
async function fromOutside(
  { store, memory }: CommandServices,
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
  return `When ${places.join(', ')} was written, ${OUTSIDE}; /memory why says what led to a line.`;
}

/** Empty if there was none, or it was taken back. */
async function lastNight({ store, zone }: CommandServices, owner: MemoryOwner): Promise<string> {
  const versions = await store.versions({ ...owner, most: MOST_VERSIONS });
  const night = versions.find(({ cause }) => cause.kind === 'night');
  if (!night) return '';
  const tiers = versions.filter(({ cause }) => cause.turnId === night.cause.turnId).map(({ tier }) => tier);
  const undo = versions[0] === night ? ' To take that back: /memory undo' : '';
  return `Put in order at night, ${zone.time(night.at)}: tier ${tiers.sort().join(', ')}.${undo}`;
}

// `/memory undo`: reverts the last change of a persona's memory; repeated, it reverts the one before. With the id of a
// turn (what a plain `undo` becomes that replies to a note on what was saved) it reverts all that this turn changed.

/** How many changes that were never written are skipped at once, and how many versions one change has at most. */
const MOST_OF_NIGHT = 20;
const MOST_OF_TURN = 200;

async function undo(
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
  const versions = await store.versions({ ...owner, most: MOST_OF_NIGHT });
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

// Describes a change of memory in words. Pure.

const MOST_LINES = 6;
const LINE_CHARS = 160;

/** `tier 1 of default/MEMORY.md`, `a line of memory/2026-11-22.md`. */
function placeOf({ tier, file }: Version): string {
  return `${tier === null ? 'a line' : `tier ${tier}`} of ${code(file)}`;
}

/** The added and the removed lines, a list each; empty if only order or white space changed. */
function describeChange({ before, after }: Version, titles: { came: string; went: string }): string {
  const { came, went } = changedLines(before, after);
  return [...listed(titles.came, came), ...listed(titles.went, went)].join('\n\n');
}

function listed(title: string, lines: string[]): string[] {
  if (lines.length === 0) return [];
  const shown = lines
    .slice(0, MOST_LINES)
    .map((line) => `- ${code(oneLine(withoutBullet(line), LINE_CHARS))}`);
  const rest = lines.length > MOST_LINES ? [`- and ${lines.length - MOST_LINES} more`] : [];
  return [[title, '', ...shown, ...rest].join('\n')];
}

// `/memory export`: the files of a persona's memory, one by one.

const MOST_FILES = 30;

async function exportFiles(
  { command }: CommandCall,
  { memory, archives }: CommandServices,
): Promise<CommandAnswer> {
  const owner = activeHere(command);
  const reset = (await archives.list(owner.chatId, owner.personaId)).filter(({ reset }) => reset);
  // What somebody had forgotten is nobody's any more, also where an operator still keeps the file.
  const forgotten = new Set(reset.map(({ file }) => `archive/${file}`));
  const all = (await memory.files(owner)).filter(({ file }) => !forgotten.has(file));
  const files: MemoryFile[] = [];
  let looked = 0;
  for (const each of all) {
    if (files.length === MOST_FILES) break;
    looked++;
    if (!(await isEmpty(memory, owner, each.file))) files.push(each);
  }
  if (files.length === 0) return { text: 'There are no files to send: I remember nothing here yet.' };
  const left = all.length - looked;
  const rest =
    left === 0
      ? ''
      : ` ${counted(left, 'older file')} ${left === 1 ? 'stays' : 'stay'} in the folder \`groups/${owner.chatId}/\`.`;
  return {
    text: `Here ${files.length === 1 ? 'is' : 'are'} ${counted(files.length, 'file')}.${rest}`,
    files: files.map(({ file, path }) => ({ path, name: file.replaceAll('/', '-') })),
  };
}

/** Also true for a MEMORY.md without text under its headings. Archives are never empty. */
async function isEmpty(memory: Memory, owner: MemoryOwner, file: string): Promise<boolean> {
  if (file === `${owner.personaId}/MEMORY.md`) {
    const whole = await memory.readAll(owner);
    return whole.trim() === '' || (await memory.snapshot(owner)).text === '';
  }
  const date = /^memory\/(.+)\.md$/.exec(file)?.[1];
  return date !== undefined && (await memory.readDaily(owner.chatId, date)) === '';
}
