/**
 * What is remembered, on disk: the port of step 4 (context) and of the memory tools. Every read goes to the
 * files, every write through the one updater, so that an operator's edit counts at once and is never lost.
 */
import { isAbsolute, join, relative } from 'node:path';
import { describe, Fault } from '../core/errors.js';
import type { Log } from '../core/log.js';
import type { Memory, MemoryOwner, SeenTier, Tier, TierWrite } from '../core/memory.js';
import { fileUpdater } from './atomic.js';
import { cut, hasMarker } from './budget.js';
import { type DailyBudget, type Day, daysUpTo, digest, isDate, withEntry } from './daily.js';
import { namesIn, readIfThere } from './disk.js';
import { chatFolder, memoryFile } from './paths.js';
import { fitForTier } from './tier-content.js';
import { isEmpty, NEW_MEMORY, parseMemory, tiersBeyond, tierText, wholeText, withTier } from './tiers.js';

export interface MemoryBudgets extends DailyBudget {
  longTermMaxChars: number;
  /** How many days are shown. */
  dailyFiles: number;
}

export interface MemoryOptions {
  groupsDir: string;
  budgets: MemoryBudgets;
  log: Log;
}

const NOTHING = Buffer.alloc(0);

export function createMemory({ groupsDir, budgets, log }: MemoryOptions): Memory {
  const update = fileUpdater();
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

    async writeTier(owner, tier, content, seen, signal) {
      if (hasMarker(content)) return { kind: 'refused', reason: CUT_CONTENT };
      const text = fitForTier(content);
      return writeTier(owner, tier, text, seen, signal);
    },

    async recentDaily(chatId, today) {
      const folder = join(chatFolder(groupsDir, chatId), 'memory');
      const days: Day[] = [];
      for (const date of daysUpTo(await namesOrNone(folder), today)) {
        if (days.length >= budgets.dailyFiles) break;
        const text = (await readOrNothing(join(folder, `${date}.md`))).toString('utf8');
        if (text.trim() !== '') days.push({ date, text });
      }
      return digest(days, budgets);
    },

    async readDaily(chatId, date) {
      return ((await readIfThere(dailyFile(chatId, date))) ?? NOTHING).toString('utf8').trim();
    },

    async appendDaily(chatId, date, entry, signal) {
      await update(dailyFile(chatId, date), (file) => withEntry(file, entry), signal);
    },
  };

  async function writeTier(
    owner: MemoryOwner,
    tier: Tier,
    text: string,
    seen: SeenTier | undefined,
    signal: AbortSignal | undefined,
  ): Promise<TierWrite> {
    let outcome: TierWrite = { kind: 'changed', current: '' };
    await update(
      memoryFile(groupsDir, owner),
      (bytes) => {
        const fresh = bytes === null || bytes.length === 0;
        const file = parseMemory(fresh ? Buffer.from(NEW_MEMORY, 'utf8') : bytes);
        const current = tierText(file, tier);
        if (!mayReplace(current, seen)) {
          outcome = { kind: 'changed', current };
          return null;
        }
        const next = withTier(file, tier, text);
        outcome = { kind: 'written', text: tierText(parseMemory(next), tier) };
        return next;
      },
      signal,
    );
    return outcome;
  }

  function dailyFile(chatId: string, date: string): string {
    if (!isDate(date))
      throw new Fault('memory_unavailable', `${JSON.stringify(date)} is not a day (YYYY-MM-DD)`);
    return join(chatFolder(groupsDir, chatId), 'memory', `${date}.md`);
  }

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

const CUT_CONTENT =
  'The content carries a truncation marker, so it was made from a text that was cut. Read the whole tier first, then write it without the marker.';

/** Only what the writer saw whole may be replaced; where nothing stands, there is nothing to lose. */
function mayReplace(current: string, seen: SeenTier | undefined): boolean {
  if (seen === undefined || 'cut' in seen) return current === '';
  return seen.text === current;
}

/** Relative where that is shorter to read, for the model and for operators. */
function fromHere(path: string): string {
  const short = relative(process.cwd(), path);
  return short.startsWith('..') || isAbsolute(short) ? path : short;
}
