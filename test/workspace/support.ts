/** A data folder of its own for a test, with a workspace or agents in it. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';
import { type Exclusive, locks } from '../../src/core/concurrency.js';
import type { MemoryBudgets } from '../../src/core/memory.js';
import type { Origins } from '../../src/core/origin.js';
import { createAgents } from '../../src/workspace/agents.js';
import { createWorkspace } from '../../src/workspace/workspace.js';
import { listeningLog } from '../groups/support.js';

export const BUDGETS: MemoryBudgets = {
  longTermMaxChars: 12_000,
  dailyPerDayMaxChars: 4_000,
  dailyFiles: 2,
  dailyMaxChars: 8_000,
  tierBytes: 64_000,
};

/** Nothing is marked. */
export const NO_MARKS = { originIn: async () => 'inside' } as unknown as Origins;

export async function dataFolder() {
  const data = await mkdtemp(join(tmpdir(), 'coterie-data-'));
  onTestFinished(() => rm(data, { recursive: true, force: true }));
  return {
    data,
    async put(path: string, content: string | Buffer): Promise<string> {
      await mkdir(dirname(join(data, path)), { recursive: true });
      await writeFile(join(data, path), content);
      return join(data, path);
    },
  };
}

export function workspaceIn(
  data: string,
  exclusive: Exclusive = locks(),
  budgets: Partial<MemoryBudgets> = {},
) {
  const log = listeningLog();
  const folder = join(data, 'workspace');
  const workspace = createWorkspace({
    ...{ folder, budgets: { ...BUDGETS, ...budgets }, exclusive, log },
    origins: NO_MARKS,
  });
  return { ...workspace, warnings: log.warnings };
}

export function agentsOf(data: string, clean: (text: string) => string = (text) => text) {
  const log = listeningLog();
  const agents = createAgents({
    ...{ folder: join(data, 'agents'), budgets: BUDGETS, exclusive: locks(), clean, log },
    origins: NO_MARKS,
  });
  return { ...agents, warnings: log.warnings };
}
