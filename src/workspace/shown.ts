/**
 * Files of the workspace and of agents as a prompt shows them: trimmed, and cut to a budget with a marker. They are read
 * again when they have changed, and no further than a prompt shows. What cannot be read counts as empty, and that is
 * logged: no file prevents a reply.
 */
import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { cut, cutMarker } from '../core/cut.js';
import { Fault } from '../core/errors.js';
import { readOr, readUnlessUnchanged } from '../core/file-access.js';
import type { Log } from '../core/log.js';
import { datesIn, digest, type MemoryBudgets, recentDays } from '../core/memory.js';
import { addedLines, type Origins, type PromptFiles } from '../core/origin.js';
import type { Workspace } from '../core/persona.js';
import type { Agents } from '../core/task.js';
import { beginningOf, namesBelow } from './inside.js';

/** The longest budget of any file but MEMORY.md and the days of the log, whose budgets are configured. */
const LONGEST = 16_000;
/** Of a character (UTF-16 unit) of UTF-8, and what white space may stand before the first word. */
const BYTES_PER_CHAR = 3;
const MARGIN_BYTES = 64_000;

/** The beginning of a file: as much as a prompt may show of it. */
interface FileBeginning {
  text: string;
  isWhole: boolean;
}

/** Older days come before a prompt only when newer ones are taken away. */
const MOST_DAYS = 60;

const NO_TEXT: FileBeginning = { text: '', isWhole: true };

/** What the markers of the days name. */
export interface DailyMarkers {
  perDay: string;
  all: string;
}

export interface ShownFiles {
  /** At most `max` characters; `limit` is what the marker says: the setting and its number. */
  text(name: string, max: number, limit: [name: string, number: number]): Promise<string>;
  /** As much as any prompt may show of these files and of the newest days of a folder, by name; without empty ones. */
  all(names: readonly string[], folder: string): Promise<ReadonlyMap<string, string>>;
  /** The latest days of a folder, as those of a chat's log. */
  days(folder: string, today: string, limits: DailyMarkers): Promise<string>;
}

export function createShownFiles(budgets: MemoryBudgets, log: Log) {
  const chars = Math.max(LONGEST, budgets.longTermMaxChars, budgets.dailyPerDayMaxChars);
  const readers = new Map<string, ReturnType<typeof readersIn>>();

  /** What lies in a folder, links to it followed. */
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
        const days = await recentDays(dates, { today, most: dailyFiles }, (date) =>
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
  workspace: Pick<Workspace, 'shownFiles'>;
  agents: Pick<Agents, 'shownOf'>;
  origins: Pick<Origins, 'markOutside'>;
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
        // Also what a call has written that then failed, or was ended.
        for (const [file, text] of await texts()) {
          const lines = addedLines(before.get(file) ?? '', text);
          if (lines.length > 0) await origins.markOutside(file, lines);
        }
      }
    },
  };
}
