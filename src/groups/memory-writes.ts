/**
 * Every change of memory files, and its undo. The previous version is stored just before the file is replaced: a crash
 * in between leaves a version of a change that never happened, but never a change without a version.
 */
import type { Clock } from '../core/clock.js';
import { entryLine } from '../core/entry.js';
import { describe } from '../core/errors.js';
import type { Log } from '../core/log.js';
import type { Memory, SeenTier, Tier, TierWrite, Version, VersionKeeper } from '../core/memory.js';
import { hasMarker } from './budget.js';
import { hasEntry, withEntry, withoutEntry } from './daily-log.js';
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
import type { RecordedChange, UpdateFile } from './update-file.js';

export interface MemoryWritesOptions {
  groupsDir: string;
  versions: VersionKeeper;
  clock: Pick<Clock, 'now'>;
  newId: () => string;
  log: Log;
}

type TakenBack = Awaited<ReturnType<Memory['takeBack']>>;

export function memoryWrites(
  { groupsDir, versions, clock, newId, log }: MemoryWritesOptions,
  update: UpdateFile,
): Pick<Memory, 'writeTier' | 'appendDaily' | 'takeBack'> {
  return {
    async writeTier(owner, tier, content, seen, { cause, signal }) {
      if (hasMarker(content)) return { kind: 'refused', reason: CUT_CONTENT };
      const text = fitForTier(content);
      let outcome: TierWrite = { kind: 'changed', current: '' };
      const change = (bytes: Buffer | null) => {
        const file = parseMemory(orNew(bytes));
        const before = tierText(file, tier);
        outcome = { kind: 'changed', current: before };
        if (!mayReplace(before, seen)) return null;
        const next = withTier(file, tier, text);
        const after = tierText(parseMemory(next), tier);
        outcome = { kind: 'written', text: after };
        const { chatId, personaId } = owner;
        const version = { chatId, personaId, file: `${personaId}/MEMORY.md`, tier, before, after, cause };
        return after === before ? null : withVersion(next, version);
      };
      await update(memoryFile(groupsDir, owner), change, signal);
      return outcome;
    },

    async appendDaily(chatId, date, entry, { cause, signal }) {
      const after = entryLine(entry);
      const { personaId } = cause;
      const version = { chatId, personaId, file: `memory/${date}.md`, tier: null, before: '', after, cause };
      const change = (bytes: Buffer | null) =>
        after === '' || hasEntry(bytes, after) ? null : withVersion(withEntry(bytes, after), version);
      return (await update(dailyFile(groupsDir, chatId, date), change, signal)) ? 'added' : 'there';
    },

    takeBack: (version, signal) =>
      version.tier === null ? takeBackEntry(version, signal) : takeBackTier(version, version.tier, signal),
  };

  function withVersion(bytes: Buffer, change: Omit<Version, 'id' | 'at'>): RecordedChange {
    const version = { id: newId(), at: clock.now(), ...change };
    const { id, file } = version;
    return {
      bytes,
      record: () => versions.keepVersion(version),
      // A version that remains is harmless: undoing it finds nothing to undo.
      withdraw: () =>
        versions.dropVersion(id).catch((error) => {
          log.warn(
            { version: id, file, error: describe(error) },
            'the version of a change that was not made could not be removed',
          );
        }),
    };
  }

  async function takeBackTier(version: Version, tier: Tier, signal?: AbortSignal): Promise<TakenBack> {
    let outcome: TakenBack = 'changed';
    const change = (bytes: Buffer | null) => {
      const file = parseMemory(orNew(bytes));
      const current = tierText(file, tier);
      const piece = current === version.after ? firstPiece(file, tier, version.before) : null;
      outcome = piece !== null ? 'done' : current === version.before ? 'already' : 'changed';
      return piece === null ? null : asItWas(file, tier, piece, version.before);
    };
    await update(memoryFile(groupsDir, version), change, signal);
    return outcome;
  }

  async function takeBackEntry(version: Version, signal?: AbortSignal): Promise<TakenBack> {
    const date = /^memory\/(.+)\.md$/.exec(version.file)?.[1] ?? '';
    const path = dailyFile(groupsDir, version.chatId, date);
    const removed = await update(path, (bytes) => bytes && withoutEntry(bytes, version.after), signal);
    return removed ? 'done' : 'already';
  }
}

const CUT_CONTENT =
  'The content carries a truncation marker, so it was made from a text that was cut. Read the whole tier first, then write it without the marker.';

function orNew(bytes: Buffer | null): Buffer {
  return bytes === null || bytes.length === 0 ? Buffer.from(NEW_MEMORY, 'utf8') : bytes;
}

/** Only a tier that the writer has seen completely may be replaced; an empty tier has nothing to lose. */
function mayReplace(current: string, seen: SeenTier | undefined): boolean {
  return current === (seen !== undefined && 'text' in seen ? seen.text : '');
}

/**
 * Restores a text that was in the file before, unchanged if possible. Only if it depended on the indentation of its
 * first line, which reading has trimmed, is it made fit like any other text.
 */
function asItWas(file: ParsedMemory, tier: Tier, piece: string, whole: string): Buffer {
  const same = withTier(file, tier, piece);
  return tierText(parseMemory(same), tier) === whole ? same : withTier(file, tier, fitForTier(piece));
}
