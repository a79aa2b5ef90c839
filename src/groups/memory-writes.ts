/** All changes of memory files, and their undo. A version is stored before its file is replaced. */

import { hasMarker } from '../core/cut.js';
import { entryLine, hasEntry, withEntry, withoutEntry } from '../core/daily-log.js';
import { describe } from '../core/errors.js';
import type { Log } from '../core/log.js';
import {
  type Memory,
  type MemoryOwner,
  type NewVersion,
  netChanges,
  type Tier,
  type TierWrite,
  type Version,
  type VersionKeeper,
  type WriteOptions,
} from '../core/memory.js';
import type { RecordedChange, UpdateFile } from '../core/write-whole.js';
import { dailyFile, memoryFile } from './paths.js';
import {
  firstPiece,
  fitForTier,
  NEW_MEMORY,
  type ParsedMemory,
  parseMemory,
  tierText,
  withTier,
} from './tiers.js';
import { takeBackWhole } from './whole-files.js';

export interface MemoryWritesOptions {
  groupsDir: string;
  versions: VersionKeeper;
  clock: { now(): number };
  newId: () => string;
  log: Log;
}

type TakenBack = Awaited<ReturnType<Memory['takeBack']>>;

export function memoryWrites(
  options: MemoryWritesOptions,
  update: UpdateFile,
): Pick<Memory, 'writeTier' | 'writeTiers' | 'appendDaily' | 'takeBack' | 'restore'> {
  const { groupsDir } = options;
  const withVersions = recording(options);

  return {
    async writeTier(owner, tier, content, seen, options) {
      const outcome = await write(owner, [{ tier, content, seen }], options);
      return outcome.kind === 'written' ? { kind: 'written', text: outcome.texts[0] ?? '' } : outcome;
    },

    writeTiers: async (owner, tiers, options) => (await write(owner, tiers, options)).kind,

    async appendDaily(chatId, date, entry, { cause, signal }) {
      const after = entryLine(entry);
      const { personaId } = cause;
      const version = { chatId, personaId, file: `memory/${date}.md`, tier: null, before: '', after, cause };
      const change = (bytes: Buffer | null) =>
        after === '' || hasEntry(bytes, after) ? null : withVersions(withEntry(bytes, after), [version]);
      return (await update(dailyFile(groupsDir, chatId, date), change, signal)) ? 'added' : 'there';
    },

    takeBack: (change, signal) => takeBack(groupsDir, update, change, signal),
    restore: (change, signal) => restore(groupsDir, update, change, signal),
  };

  async function write(
    owner: MemoryOwner,
    tiers: Parameters<Memory['writeTiers']>[1],
    { cause, signal }: WriteOptions,
  ): Promise<Exclude<TierWrite, { kind: 'written' }> | { kind: 'written'; texts: string[] }> {
    if (tiers.some(({ content }) => hasMarker(content))) return { kind: 'refused', reason: CUT_CONTENT };
    const { chatId, personaId } = owner;
    const file = `${personaId}/MEMORY.md`;
    let outcome: Awaited<ReturnType<typeof write>> = { kind: 'changed', current: '' };
    const change = (bytes: Buffer | null) => {
      let next = orNew(bytes);
      const texts: string[] = [];
      const changes: NewVersion[] = [];
      for (const { tier, content, seen } of tiers) {
        const parsed = parseMemory(next);
        const before = tierText(parsed, tier);
        outcome = { kind: 'changed', current: before };
        // Only a tier that the writer has seen completely may be replaced; an empty one has nothing to lose.
        if (before !== (seen !== undefined && 'text' in seen ? seen.text : '')) return null;
        if (content === before) {
          texts.push(before);
          continue;
        }
        next = withTier(parsed, tier, fitForTier(content));
        const after = tierText(parseMemory(next), tier);
        texts.push(after);
        if (after !== before) changes.push({ chatId, personaId, file, tier, before, after, cause });
      }
      outcome = { kind: 'written', texts };
      return changes.length === 0 ? null : withVersions(next, changes);
    };
    await update(memoryFile(groupsDir, owner), change, signal);
    return outcome;
  }
}

/** A change of a file with its versions. */
export function recording({ versions, clock, newId, log }: MemoryWritesOptions) {
  return (bytes: Buffer, changes: NewVersion[]): RecordedChange => {
    const made = changes.map((change) => ({ id: newId(), at: clock.now(), ...change }));
    return {
      bytes,
      async record() {
        for (const version of made) await versions.keepVersion(version);
      },
      // A leftover version is harmless: undoing it finds nothing to undo.
      async withdraw() {
        for (const { id, file } of made) {
          await versions.dropVersion(id).catch((error) => {
            log.warn(
              { version: id, file, error: describe(error) },
              'removing the version of a change that was not made failed',
            );
          });
        }
      },
    };
  };
}

async function takeBack(
  groupsDir: string,
  update: UpdateFile,
  change: Version[],
  signal?: AbortSignal,
): Promise<TakenBack> {
  const whole = change.find(({ tier, cause }) => tier === null && cause.kind === 'owner');
  if (whole) return takeBackWhole(groupsDir, update, whole);
  let isDone = false;
  for (const file of new Set(change.flatMap(({ tier, file }) => (tier === null ? [] : [file])))) {
    const ofFile = change.filter((version) => version.file === file);
    const outcome = await takeBackTiers(groupsDir, update, ofFile, signal);
    if (outcome === 'changed') return 'changed';
    isDone ||= outcome === 'done';
  }
  for (const { chatId, file, after } of change.filter(({ tier }) => tier === null)) {
    const path = dailyFile(groupsDir, chatId, /^memory\/(.+)\.md$/.exec(file)?.[1] ?? '');
    if (await update(path, (bytes) => bytes && withoutEntry(bytes, after), signal)) isDone = true;
  }
  return isDone ? 'done' : 'already';
}

/** Versions of turns: newest first. */
async function restore(
  groupsDir: string,
  update: UpdateFile,
  change: Version[],
  signal?: AbortSignal,
): Promise<TakenBack> {
  const tiers = change.filter(({ tier }) => tier !== null);
  const turned = tiers.map((each) => ({ ...each, before: each.after, after: each.before })).toReversed();
  const outcome = await takeBack(groupsDir, update, turned, signal);
  if (outcome === 'changed') return 'changed';
  let isDone = outcome === 'done';
  for (const { chatId, file, after } of change.filter(({ tier }) => tier === null).toReversed()) {
    const path = dailyFile(groupsDir, chatId, /^memory\/(.+)\.md$/.exec(file)?.[1] ?? '');
    const add = (bytes: Buffer | null) => (hasEntry(bytes, after) ? null : withEntry(bytes, after));
    if (await update(path, add, signal)) isDone = true;
  }
  return isDone ? 'done' : 'already';
}

/** All versions are of one file. */
async function takeBackTiers(
  groupsDir: string,
  update: UpdateFile,
  change: Version[],
  signal?: AbortSignal,
): Promise<TakenBack> {
  const [version] = change;
  if (version === undefined) return 'already';
  let outcome: TakenBack = 'changed';
  const undo = (bytes: Buffer | null) => {
    let next = orNew(bytes);
    outcome = 'already';
    const file = parseMemory(next);
    // The first write of a tier has its old text: if all are restored, a crash followed our own undo.
    if (netChanges(change).every(({ tier, before }) => tier !== null && tierText(file, tier) === before))
      return null;
    for (const { tier, before, after } of change) {
      if (tier === null) continue;
      const parsed = parseMemory(next);
      const current = tierText(parsed, tier);
      const piece = current === after ? firstPiece(parsed, tier, before) : null;
      if (piece === null && current === before) continue;
      outcome = piece === null ? 'changed' : 'done';
      if (piece === null) return null;
      next = asItWas(parsed, tier, piece, before);
    }
    return outcome === 'done' ? next : null;
  };
  await update(memoryFile(groupsDir, version), undo, signal);
  return outcome;
}

const CUT_CONTENT =
  'The content carries a truncation marker, so it was made from a text that was cut. Read the whole tier first, then write it without the marker.';

function orNew(bytes: Buffer | null): Buffer {
  return bytes === null || bytes.length === 0 ? Buffer.from(NEW_MEMORY, 'utf8') : bytes;
}

/** Restores a former text, unchanged unless it depended on its first line's trimmed indentation. */
function asItWas(file: ParsedMemory, tier: Tier, piece: string, whole: string): Buffer {
  const same = withTier(file, tier, piece);
  return tierText(parseMemory(same), tier) === whole ? same : withTier(file, tier, fitForTier(piece));
}
