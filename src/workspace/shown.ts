/** Files of the workspace and of agents in a prompt: cut to a budget, reread when changed, empty if unreadable. */
import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import type { Exclusive } from '../core/concurrency.js';
import { addedLines, cut, cutMarker } from '../core/cut.js';
import { datesIn, digest, recentDays } from '../core/daily-log.js';
import { Fault } from '../core/errors.js';
import { readOr, readUnlessUnchanged } from '../core/file-cache.js';
import type { Log } from '../core/log.js';
import type { MemoryBudgets } from '../core/memory.js';
import type { Origins, PromptFiles } from '../core/origin.js';
import type { Agents } from '../core/task.js';
import type { Workspace } from '../core/workspace.js';
import { type Beginning, beginningOf, namesBelow } from './inside.js';

export interface FolderOptions {
  /** `data/workspace` or `data/agents` */
  folder: string;
  budgets: MemoryBudgets;
  exclusive: Exclusive;
  origins: Origins;
  log: Log;
}

/** The largest fixed budget. MEMORY.md and the days of the log have configured ones. */
const LONGEST = 16_000;
/** UTF-8 bytes per UTF-16 unit at most, and allowance for white space before the first word. */
const BYTES_PER_CHAR = 3;
const MARGIN_BYTES = 64_000;
/** Older days reach a prompt only after newer ones are deleted. */
const MOST_DAYS = 60;

/** As much as a prompt may show. */
type ShownFile = Pick<Beginning, 'isWhole'> & { text: string };

const NO_TEXT: ShownFile = { text: '', isWhole: true };

export type ShownFiles = Awaited<ReturnType<ReturnType<typeof createShownFiles>>>;

export function createShownFiles(budgets: MemoryBudgets, log: Log) {
  const chars = Math.max(LONGEST, budgets.longTermMaxChars, budgets.dailyPerDayMaxChars);
  const readers = new Map<string, ReturnType<typeof readersIn>>();

  /** The files in a folder, links to it resolved. */
  return async function filesIn(folder: string) {
    const root = await realpath(folder).catch(() => folder);
    const { textAt, datesAt } = readers.get(root) ?? readersIn(root, chars);
    readers.set(root, { textAt, datesAt });
    const readable = <Value>(name: string, read: (path: string) => Promise<Value>, otherwise: Value) =>
      readOr(otherwise, join(root, name), read, log, 'file cannot be read; the prompt counts it as empty');

    /** At most `max` characters; the marker names the setting and its number. */
    async function text(name: string, max: number, setting: string, number: number): Promise<string> {
      const found = await readable(name, textAt, NO_TEXT);
      const { kept } = cut(found.text, Math.max(0, max), setting);
      if (found.isWhole && kept === found.text.length) return found.text;
      return `${found.text.slice(0, kept)}\n\n${cutMarker(setting, number)}`.trimStart();
    }

    return {
      text,
      /** As much as any prompt may show of these files and the folder's newest days, without empty ones. */
      async all(names: readonly string[], folder: string): Promise<Map<string, string>> {
        const dates = (await readable(folder, datesAt, [])).slice(0, MOST_DAYS);
        const files = [...names, ...dates.map((date) => `${folder}/${date}.md`)];
        const texts = files.map(
          async (name) => [name, (await readable(name, textAt, NO_TEXT)).text] as const,
        );
        return new Map((await Promise.all(texts)).filter(([, text]) => text !== ''));
      },
      /** The latest days of a folder, in the format of a chat's log. */
      async days(name: string, today: string, perDay: string, all: string): Promise<string> {
        const { dailyFiles, dailyPerDayMaxChars: max, dailyMaxChars } = budgets;
        const days = await recentDays(await readable(name, datesAt, []), today, dailyFiles, (date) =>
          text(`${name}/${date}.md`, max, perDay, max),
        );
        return digest(days, dailyMaxChars, all);
      },
    };
  };
}

function readersIn(root: string, chars: number) {
  const nameOf = (path: string) => path.slice(root.length + 1);
  return {
    textAt: readUnlessUnchanged(NO_TEXT, async (path) => {
      const found = await beginningOf(root, nameOf(path), chars * BYTES_PER_CHAR + MARGIN_BYTES);
      if (found?.bytes.includes(0))
        throw new Fault('memory_unavailable', `Cannot read ${path}: it is no text in UTF-8`);
      return found === null ? NO_TEXT : { text: found.bytes.toString('utf8').trim(), isWhole: found.isWhole };
    }),
    datesAt: readUnlessUnchanged<string[]>([], async (path) => datesIn(await namesBelow(root, nameOf(path)))),
  };
}

export function createPromptFiles(workspace: Workspace, agents: Agents, origins: Origins): PromptFiles {
  return {
    async watched(agent, write) {
      const texts = async () => {
        const spaces = agent === null ? [] : [null, agent.chatId];
        const found = await Promise.all([
          workspace.shownFiles(),
          ...spaces.map((chatId) => agents.shownOf({ agent: agent?.id ?? '', chatId })),
        ]);
        return new Map(found.flatMap((files) => [...files]));
      };
      const before = await texts();
      try {
        return await write();
      } finally {
        // Also writes of a call that then failed or was ended.
        for (const [file, text] of await texts()) {
          const lines = addedLines(before.get(file) ?? '', text);
          if (lines.length > 0) await origins.markOutside(file, lines);
        }
      }
    },
  };
}
