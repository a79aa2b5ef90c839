/** A groups folder of its own for a test, and a log that remembers its warnings. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { Log } from '../../src/core/log.js';
import { createMemory, type MemoryBudgets } from '../../src/groups/memory.js';

const BUDGETS: MemoryBudgets = {
  longTermMaxChars: 12_000,
  dailyPerDayMaxChars: 4_000,
  dailyFiles: 2,
  dailyMaxChars: 8_000,
};

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

export function memoryIn(groupsDir: string, budgets: Partial<MemoryBudgets> = {}, log: Log = listeningLog()) {
  return createMemory({ groupsDir, budgets: { ...BUDGETS, ...budgets }, log });
}
