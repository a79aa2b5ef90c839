/**
 * Every change of what is remembered, and the way back. The version before it is kept just before a file is
 * replaced: a crash in between leaves a version of something that never was, and never a change without one.
 */

import type { Clock } from '../core/clock.js';
import { entryLine } from '../core/entry.js';
import { describe } from '../core/errors.js';
import type { Log } from '../core/log.js';
import type { Memory, SeenTier, Tier, TierWrite, Version, VersionKeeper } from '../core/memory.js';
import type { Noted, UpdateFile } from './atomic.js';
import { hasMarker } from './budget.js';
import { hasEntry, withEntry, withoutEntry } from './daily.js';
import { dailyFile, memoryFile } from './paths.js';
import { fitForTier } from './tier-content.js';
import { firstPiece, type MemoryFile, NEW_MEMORY, parseMemory, tierText, withTier } from './tiers.js';

export interface ChangesOptions {
  groupsDir: string;
  update: UpdateFile;
  versions: VersionKeeper;
  clock: Pick<Clock, 'now'>;
  newId: () => string;
  log: Log;
}

type Changes = Pick<Memory, 'writeTier' | 'appendDaily' | 'takeBack'>;
type TakenBack = Awaited<ReturnType<Memory['takeBack']>>;

export function memoryChanges(options: ChangesOptions): Changes {
  const { groupsDir, update, versions, clock, newId, log } = options;

  return {
    async writeTier(owner, tier, content, seen, { cause, signal }) {
      if (hasMarker(content)) return { kind: 'refused', reason: CUT_CONTENT };
      const text = fitForTier(content);
      let outcome: TierWrite = { kind: 'changed', current: '' };
      await update(
        memoryFile(groupsDir, owner),
        (bytes) => {
          const file = parseMemory(orNew(bytes));
          const before = tierText(file, tier);
          if (!mayReplace(before, seen)) {
            outcome = { kind: 'changed', current: before };
            return null;
          }
          const next = withTier(file, tier, text);
          const after = tierText(parseMemory(next), tier);
          outcome = { kind: 'written', text: after };
          if (after === before) return null;
          const { chatId, personaId } = owner;
          return noted(next, {
            chatId,
            personaId,
            file: `${personaId}/MEMORY.md`,
            tier,
            before,
            after,
            cause,
          });
        },
        signal,
      );
      return outcome;
    },

    async appendDaily(chatId, date, entry, { cause, signal }) {
      const after = entryLine(entry);
      const path = dailyFile(groupsDir, chatId, date);
      const file = `memory/${date}.md`;
      const added = await update(
        path,
        (bytes) => {
          if (after === '' || hasEntry(bytes, after)) return null;
          const change = { chatId, personaId: cause.personaId, file, tier: null, before: '', after, cause };
          return noted(withEntry(bytes, after), change);
        },
        signal,
      );
      return added ? 'added' : 'there';
    },

    takeBack: (version, signal) =>
      version.tier === null ? takeBackEntry(version, signal) : takeBackTier(version, version.tier, signal),
  };

  function noted(bytes: Buffer, change: Omit<Version, 'id' | 'at'>): Noted {
    const version = { id: newId(), at: clock.now(), ...change };
    return {
      bytes,
      note: () => versions.keepVersion(version),
      async withdraw() {
        try {
          await versions.dropVersion(version.id);
        } catch (error) {
          // Whoever takes it back will find that there is nothing to be taken back.
          const { id, file } = version;
          log.warn(
            { version: id, file, error: describe(error) },
            'a version stays of a change that was not made',
          );
        }
      },
    };
  }

  async function takeBackTier(
    version: Version,
    tier: Tier,
    signal: AbortSignal | undefined,
  ): Promise<TakenBack> {
    let outcome: TakenBack = 'changed';
    await update(
      memoryFile(groupsDir, version),
      (bytes) => {
        const file = parseMemory(orNew(bytes));
        const current = tierText(file, tier);
        const piece = current === version.after ? firstPiece(file, tier, version.before) : null;
        if (piece === null) {
          outcome = current === version.before ? 'already' : 'changed';
          return null;
        }
        outcome = 'done';
        return asItWas(file, tier, piece, version.before);
      },
      signal,
    );
    return outcome;
  }

  async function takeBackEntry(version: Version, signal: AbortSignal | undefined): Promise<TakenBack> {
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

/** Only what the writer saw whole may be replaced; where nothing stands, there is nothing to lose. */
function mayReplace(current: string, seen: SeenTier | undefined): boolean {
  if (seen === undefined || 'cut' in seen) return current === '';
  return seen.text === current;
}

/**
 * What once stood in the file may stand there again as it is. Only where trimming took from it what made it a
 * part of the tier (the indentation of its first line), it is made fit like any other text.
 */
function asItWas(file: MemoryFile, tier: Tier, piece: string, whole: string): Buffer {
  const same = withTier(file, tier, piece);
  return tierText(parseMemory(same), tier) === whole ? same : withTier(file, tier, fitForTier(piece));
}
