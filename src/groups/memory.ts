/**
 * What is remembered, on disk: the port of step 4 (context) and of the memory tools. Every read goes to the
 * files, every write through the one updater, so that an operator's edit counts at once and is never lost.
 */
import { join } from 'node:path';
import type { Clock } from '../core/clock.js';
import { describe } from '../core/errors.js';
import type { Log } from '../core/log.js';
import type { Memory, SeenTier, Tier, VersionKeeper } from '../core/memory.js';
import { fileUpdater } from './atomic.js';
import { cut, hasMarker } from './budget.js';
import { memoryChanges } from './changes.js';
import { type DailyBudget, type Day, daysUpTo, digest } from './daily.js';
import { namesIn, readIfThere } from './disk.js';
import { forgetting } from './forgetting.js';
import { filesOfOwner } from './held-files.js';
import type { Alone } from './locks.js';
import { archiveFolder, dailyFile, dailyFolder, fromHere, memoryFile } from './paths.js';
import { isEmpty, parseMemory, tiersBeyond, tierText, wholeText } from './tiers.js';

export interface MemoryBudgets extends DailyBudget {
  longTermMaxChars: number;
  /** How many days are shown. */
  dailyFiles: number;
}

export interface MemoryOptions {
  groupsDir: string;
  budgets: MemoryBudgets;
  versions: VersionKeeper;
  /** Shared with the archives, in which memory erases. */
  alone: Alone;
  clock: Pick<Clock, 'now'>;
  newId: () => string;
  log: Log;
}

const NOTHING = Buffer.alloc(0);

export function createMemory(options: MemoryOptions): Memory {
  const { groupsDir, budgets, versions, alone, clock, newId, log } = options;
  const update = fileUpdater(alone);
  const principlesFile = join(groupsDir, 'AGENTS.md');

  return {
    principlesPath: fromHere(principlesFile),

    async principles() {
      return (await readOrNothing(principlesFile)).toString('utf8').trim();
    },

    async snapshot(owner) {
      const bytes = await readOr(null, memoryFile(groupsDir, owner));
      if (bytes === null) return { text: '', seen: { 1: { cut: true }, 2: { cut: true }, 3: { cut: true } } };
      const file = parseMemory(bytes);
      const whole = wholeText(file);
      const shown = isEmpty(file)
        ? { text: '', kept: 0 }
        : cut(whole, budgets.longTermMaxChars, 'memory-max-chars');
      const leading = whole.length - whole.trimStart().length;
      const beyond = tiersBeyond(file, leading + shown.kept);
      const seen = (tier: Tier): SeenTier =>
        beyond.has(tier) ? { cut: true } : { text: tierText(file, tier) };
      return { text: shown.text, seen: { 1: seen(1), 2: seen(2), 3: seen(3) } };
    },

    async readAll(owner) {
      return wholeText(parseMemory((await readIfThere(memoryFile(groupsDir, owner))) ?? NOTHING));
    },

    async readTier(owner, tier) {
      return tierText(parseMemory((await readIfThere(memoryFile(groupsDir, owner))) ?? NOTHING), tier);
    },

    async recentDaily(chatId, today) {
      const folder = dailyFolder(groupsDir, chatId);
      const days: Day[] = [];
      for (const date of daysUpTo(await namesOrNone(folder), today)) {
        if (days.length >= budgets.dailyFiles) break;
        const text = (await readOrNothing(join(folder, `${date}.md`))).toString('utf8');
        if (text.trim() !== '') days.push({ date, text });
      }
      return digest(days, budgets);
    },

    async holdsMore({ chatId }, { memory, dailyLog }) {
      if (hasMarker(memory) || hasMarker(dailyLog)) return true;
      const days = (await namesOrNone(dailyFolder(groupsDir, chatId))).length;
      if (days > budgets.dailyFiles) return true;
      return (await namesOrNone(archiveFolder(groupsDir, chatId))).length > 0;
    },

    async readDaily(chatId, date) {
      return ((await readIfThere(dailyFile(groupsDir, chatId, date))) ?? NOTHING).toString('utf8').trim();
    },

    files: (owner) => filesOfOwner(groupsDir, owner),

    ...memoryChanges({ groupsDir, update, versions, clock, newId, log }),
    ...forgetting({ groupsDir, update, alone, log }),
  };

  async function readOrNothing(path: string): Promise<Buffer> {
    return (await readOr(NOTHING, path)) ?? NOTHING;
  }

  /** For prompts: a missing file is empty, an unreadable one is `otherwise` and the operator hears of it. */
  async function readOr<Otherwise>(otherwise: Otherwise, path: string): Promise<Buffer | Otherwise> {
    try {
      return (await readIfThere(path)) ?? NOTHING;
    } catch (error) {
      log.warn({ path, error: describe(error) }, 'counted as empty in the prompt, for it cannot be read');
      return otherwise;
    }
  }

  async function namesOrNone(folder: string): Promise<string[]> {
    try {
      return await namesIn(folder);
    } catch (error) {
      log.warn(
        { path: folder, error: describe(error) },
        'no daily log in the prompt, for its folder cannot be read',
      );
      return [];
    }
  }
}
