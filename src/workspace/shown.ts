/**
 * Files of the workspace and of agents in a prompt: trimmed, and cut to a budget with a marker. Changed files
 * are reread, and only as far as a prompt shows. An unreadable file counts as empty and is logged: no file
 * prevents a reply.
 */
import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { cut, cutMarker } from '../core/cut.js';
import { datesIn, digest, recentDays } from '../core/daily-log.js';
import { Fault } from '../core/errors.js';
import { readOr, readUnlessUnchanged } from '../core/file-cache.js';
import { addedLines } from '../core/lines.js';
import type { Log } from '../core/log.js';
import type { MemoryBudgets } from '../core/memory.js';
import type { Origins, PromptFiles } from '../core/origin.js';
import type { Agents } from '../core/task.js';
import type { Workspace } from '../core/workspace.js';
import { beginningOf, namesBelow } from './inside.js';

/** The largest fixed budget. MEMORY.md and the days of the log have configured ones. */
const LONGEST = 16_000;
/** Maximum UTF-8 bytes per UTF-16 unit, and allowance for white space before the first word. */
const BYTES_PER_CHAR = 3;
const MARGIN_BYTES = 64_000;

/** The beginning of a file: as much as a prompt may show of it. */
interface FileBeginning {
  text: string;
  isWhole: boolean;
}

/** Older days reach a prompt only after newer ones are deleted. */
const MOST_DAYS = 60;

const NO_TEXT: FileBeginning = { text: '', isWhole: true };

/** The settings that the days' markers name. */
export interface DailyMarkers {
  perDay: string;
  all: string;
}

export interface ShownFiles {
  /** At most `max` characters; `limit`: the setting and its number, for the marker. */
  text(name: string, max: number, limit: [name: string, number: number]): Promise<string>;
  /** As much as any prompt may show of these files and the folder's newest days, without empty ones. */
  all(names: readonly string[], folder: string): Promise<ReadonlyMap<string, string>>;
  /** The latest days of a folder, in the format of a chat's log. */
  days(folder: string, today: string, limits: DailyMarkers): Promise<string>;
}

export function createShownFiles(budgets: MemoryBudgets, log: Log) {
  const chars = Math.max(LONGEST, budgets.longTermMaxChars, budgets.dailyPerDayMaxChars);
  const readers = new Map<string, ReturnType<typeof readersIn>>();

  /** The files in a folder, links to it resolved. */
  return async function filesIn(folder: string): Promise<ShownFiles> {
    const root = await realpath(folder).catch(() => folder);
    const { textAt, datesAt } = kept(root);
    const readable = <Value>(name: string, read: (path: string) => Promise<Value>, otherwise: Value) =>
      readOr(otherwise, join(root, name), read, log, 'file cannot be read; the prompt counts it as empty');

    async function text(name: string, max: number, [setting, number]: [string, number]): Promise<string> {
      const found = await readable(name, textAt, NO_TEXT);
      const shown = cut(found.text, Math.max(0, max), setting);
      if (found.isWhole && shown.kept === found.text.length) return found.text;
      const marker = cutMarker(setting, number);
      return `${found.text.slice(0, shown.kept)}\n\n${marker}`.trimStart();
    }

    return {
      text,
      async all(names, folder) {
        const dates = (await readable(folder, datesAt, [])).slice(0, MOST_DAYS);
        const files = [...names, ...dates.map((date) => `${folder}/${date}.md`)];
        const found = await Promise.all(files.map((name) => readable(name, textAt, NO_TEXT)));
        return new Map(
          files.map((name, n) => [name, found[n]?.text ?? ''] as const).filter(([, text]) => text !== ''),
        );
      },
      async days(name, today, { perDay, all }) {
        const { dailyFiles, dailyPerDayMaxChars: max, dailyMaxChars } = budgets;
        const dates = await readable(name, datesAt, []);
        const days = await recentDays(dates, today, dailyFiles, (date) =>
          text(`${name}/${date}.md`, max, [perDay, max]),
        );
        return digest(days, dailyMaxChars, all);
      },
    };
  };

  function kept(root: string) {
    const found = readers.get(root) ?? readersIn(root, chars);
    readers.set(root, found);
    return found;
  }
}

function readersIn(root: string, chars: number) {
  const nameOf = (path: string) => path.slice(root.length + 1);
  return {
    textAt: readUnlessUnchanged(NO_TEXT, async (path) => {
      const found = await beginningOf(root, nameOf(path), chars * BYTES_PER_CHAR + MARGIN_BYTES);
      if (found === null) return NO_TEXT;
      if (found.bytes.includes(0)) {
        throw new Fault('memory_unavailable', `Cannot read ${path}: it is no text in UTF-8`);
      }
      return { text: found.bytes.toString('utf8').trim(), isWhole: found.isWhole };
    }),
    datesAt: readUnlessUnchanged<string[]>([], async (path) => datesIn(await namesBelow(root, nameOf(path)))),
  };
}

export interface PromptFilesParts {
  workspace: Workspace;
  agents: Agents;
  origins: Origins;
}

export function createPromptFiles({ workspace, agents, origins }: PromptFilesParts): PromptFiles {
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
