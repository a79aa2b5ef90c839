/**
 * `/memory` and `/memory show`: the tiers and the recent daily log, cut as in the prompt, and what the last nightly
 * consolidation changed of them.
 */
import type { MemoryOwner, Tier } from '../../core/memory.js';
import { withFencesClosed } from '../quoting.js';
import type { CommandAnswer, CommandCall, CommandServices } from './command.js';
import { activeHere } from './here.js';
import { holdsOutside } from './memory-lines.js';
import { OUTSIDE } from './memory-source.js';

/** How far back a consolidation is looked for. */
const MOST_VERSIONS = 1_000;
const TIERS: readonly Tier[] = [1, 2, 3];

export async function show({ command }: CommandCall, services: CommandServices): Promise<CommandAnswer> {
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
