/** Memory on disk, cached for prompts. All writes use one updater, so an operator's edit is never lost. */
import { join } from 'node:path';
import type { WholeFiles } from '../core/board.js';
import type { Exclusive } from '../core/concurrency.js';
import { cut, hasMarker } from '../core/cut.js';
import { datesIn, digest, isDayFile, recentDays } from '../core/daily-log.js';
import { namesIn, readIfThere, statIfThere } from '../core/file-access.js';
import { readOr, readUnlessUnchanged } from '../core/file-cache.js';
import type {
  Memory,
  MemoryBudgets,
  MemoryFile,
  MemoryOwner,
  MemorySnapshot,
  SeenTier,
  Tier,
} from '../core/memory.js';
import { memoryPath } from '../core/origin.js';
import { fileUpdater } from '../core/write-whole.js';
import { archivesOf } from './archives.js';
import { forgetting } from './forget.js';
import { type MemoryWritesOptions, memoryWrites, recording } from './memory-writes.js';
import { archiveFile, archiveFolder, dailyFile, dailyFolder, fromHere, memoryFile } from './paths.js';
import { isEmpty, parseMemory, tiersBeyond, tierText, wholeText } from './tiers.js';
import { wholeFiles } from './whole-files.js';

interface MemoryOptions extends MemoryWritesOptions {
  budgets: MemoryBudgets;
  /** Shared with the archives and the clipboards, in which memory erases text. */
  exclusive: Exclusive;
  /** `data/clipboard`, `data/agents`, if there are any. */
  clipboardDir?: string;
  agentsDir?: string;
}

const NOTHING = Buffer.alloc(0);
const UNSEEN: SeenTier = { cut: true };
const NO_LOG: { files: number; dates: string[] } = { files: 0, dates: [] };

export function createMemory(options: MemoryOptions): Memory & WholeFiles {
  const { groupsDir, budgets, exclusive, versions, clipboardDir = null, agentsDir = null, log } = options;
  const update = fileUpdater(exclusive);
  const principlesFile = join(groupsDir, 'AGENTS.md');

  const principlesIn = readUnlessUnchanged('', async (path) => (await textOf(path)).trim());
  const snapshotOf = readUnlessUnchanged(emptySnapshot({ text: '' }), async (path) =>
    snapshot((await readIfThere(path)) ?? NOTHING, budgets.longTermMaxChars),
  );
  const logFolder = readUnlessUnchanged(NO_LOG, async (path) => {
    const names = await namesIn(path);
    return { files: names.length, dates: datesIn(names) };
  });
  const dayOf = readUnlessUnchanged(
    '',
    async (path) => cut(await textOf(path), budgets.dailyPerDayMaxChars, 'daily-per-day-max-chars').text,
  );
  const archivesIn = readUnlessUnchanged(0, async (path) => (await namesIn(path)).length);

  /** An unreadable file never prevents a reply. */
  function forPrompt<Value>(
    path: string,
    read: (path: string) => Promise<Value>,
    otherwise: Value,
  ): Promise<Value> {
    return readOr(otherwise, path, read, log, 'memory file cannot be read; the prompt counts it as empty');
  }
  const parsed = async (owner: MemoryOwner) =>
    parseMemory((await readIfThere(memoryFile(groupsDir, owner))) ?? NOTHING);

  return {
    principlesPath: fromHere(principlesFile),
    budgets,
    principles: () => forPrompt(principlesFile, principlesIn, ''),
    snapshot: async (owner) => forPrompt(memoryFile(groupsDir, owner), snapshotOf, emptySnapshot(UNSEEN)),
    readAll: async (owner) => wholeText(await parsed(owner)),
    readTier: async (owner, tier) => tierText(await parsed(owner), tier),

    async recentDaily(chatId, today) {
      const folder = dailyFolder(groupsDir, chatId);
      const { dates } = await forPrompt(folder, logFolder, NO_LOG);
      if (dates.length === 0) return '';
      const dayText = (date: string) => forPrompt(join(folder, `${date}.md`), dayOf, '');
      return digest(await recentDays(dates, today, budgets.dailyFiles, dayText), budgets.dailyMaxChars);
    },

    async holdsMore({ chatId }, { memory, dailyLog }) {
      if (hasMarker(memory) || hasMarker(dailyLog)) return true;
      const { files } = await forPrompt(dailyFolder(groupsDir, chatId), logFolder, NO_LOG);
      if (files > budgets.dailyFiles) return true;
      return (await forPrompt(archiveFolder(groupsDir, chatId), archivesIn, 0)) > 0;
    },

    originOf: (owner) =>
      versions.originIn(memoryPath(owner.chatId, `${owner.personaId}/MEMORY.md`), () =>
        forPrompt(memoryFile(groupsDir, owner), textOf, ''),
      ),
    originOfDay: (chatId, date) =>
      versions.originIn(memoryPath(chatId, `memory/${date}.md`), () =>
        forPrompt(dailyFile(groupsDir, chatId, date), textOf, ''),
      ),

    readDaily: async (chatId, date) => (await textOf(dailyFile(groupsDir, chatId, date))).trim(),
    files: (owner) => filesOfOwner(groupsDir, owner),
    ...memoryWrites(options, update),
    ...wholeFiles(groupsDir, update, options.newId, recording(options)),
    ...forgetting(groupsDir, clipboardDir, agentsDir, update, exclusive, log),
  };
}

async function textOf(path: string): Promise<string> {
  return (await readIfThere(path))?.toString('utf8') ?? '';
}

function emptySnapshot(seen: SeenTier): MemorySnapshot {
  return { text: '', seen: { 1: seen, 2: seen, 3: seen } };
}

function snapshot(bytes: Buffer, maxChars: number): MemorySnapshot {
  const file = parseMemory(bytes);
  const whole = wholeText(file);
  const shown = isEmpty(file) ? { text: '', kept: 0 } : cut(whole, maxChars, 'memory-max-chars');
  const leading = whole.length - whole.trimStart().length;
  const beyond = tiersBeyond(file, leading + shown.kept);
  const seen = (tier: Tier): SeenTier => (beyond.has(tier) ? UNSEEN : { text: tierText(file, tier) });
  return { text: shown.text, seen: { 1: seen(1), 2: seen(2), 3: seen(3) } };
}

/** Those that exist and are not empty. */
async function filesOfOwner(groupsDir: string, owner: MemoryOwner): Promise<MemoryFile[]> {
  const { chatId, personaId } = owner;
  const days = (await namesIn(dailyFolder(groupsDir, chatId))).filter(isDayFile).sort().reverse();
  const archives = (await archivesOf(groupsDir, owner)).reverse();
  return [
    { file: `${personaId}/MEMORY.md`, path: memoryFile(groupsDir, owner) },
    ...days.map((name) => ({ file: `memory/${name}`, path: join(dailyFolder(groupsDir, chatId), name) })),
    ...archives.map((name) => ({ file: `archive/${name}`, path: archiveFile(groupsDir, chatId, name) })),
  ].filter(({ path }) => {
    const found = statIfThere(path);
    return found?.isFile() && found.size > 0;
  });
}
