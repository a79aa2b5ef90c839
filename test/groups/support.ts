/** A groups folder of its own for a test, a log that remembers its warnings, a memory with versions in memory. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { Archives } from '../../src/core/chat-record.js';
import { type Exclusive, locks } from '../../src/core/concurrency.js';
import { createZone } from '../../src/core/dates.js';
import type { Log } from '../../src/core/log.js';
import type { Cause, MemoryBudgets, Version, VersionKeeper } from '../../src/core/memory.js';
import { createArchives } from '../../src/groups/archives.js';
import { createMemory } from '../../src/groups/memory.js';

const BUDGETS: MemoryBudgets = {
  longTermMaxChars: 12_000,
  dailyPerDayMaxChars: 4_000,
  dailyFiles: 2,
  dailyMaxChars: 8_000,
  tierBytes: 64_000,
};

export const CAUSE: Cause = { kind: 'turn', personaId: 'luna', turnId: 't1' };
/** What a write needs to be told where a test is about something else. */
export const BY_TURN = { cause: CAUSE };
/** When all versions of a test are made. */
export const NOW = 1_700_000_000_000;

export async function groupsFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'groups-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

export function listeningLog(): Log & { warnings: { fields: object; message: string }[] } {
  const warnings: { fields: object; message: string }[] = [];
  const ignore = () => {};
  return {
    warnings,
    debug: ignore,
    info: ignore,
    error: ignore,
    warn: (fields, message) => void warnings.push({ fields, message }),
  };
}

/** Keeps versions in an array; `dropped` are the ids of those that were dropped again. */
export function versionShelf(): VersionKeeper & { kept: Version[]; dropped: string[] } {
  const kept: Version[] = [];
  const dropped: string[] = [];
  return {
    kept,
    dropped,
    async keepVersion(version) {
      kept.push(version);
    },
    originIn: async () => 'inside',
    async dropVersion(id) {
      dropped.push(id);
      const at = kept.findIndex((version) => version.id === id);
      if (at >= 0) kept.splice(at, 1);
    },
  };
}

export interface MemoryParts {
  log?: Log;
  versions?: VersionKeeper;
  exclusive?: Exclusive;
  newId?: () => string;
  clipboardDir?: string;
  agentsDir?: string;
}

export function memoryIn(groupsDir: string, budgets: Partial<MemoryBudgets> = {}, parts: MemoryParts = {}) {
  let ids = 0;
  return createMemory({
    groupsDir,
    budgets: { ...BUDGETS, ...budgets },
    versions: versionShelf(),
    exclusive: locks(),
    clock: { now: () => NOW },
    newId: () => `v${++ids}`,
    log: listeningLog(),
    ...parts,
  });
}

export function archivesIn(groupsDir: string): Archives {
  return createArchives(groupsDir, createZone('UTC'), locks(), listeningLog());
}
