/**
 * Agents on disk, `data/agents`: implements the port for whoever runs tasks. Each agent has an internal space, which its
 * tools may write, and which is therefore read as what strangers made: no link in it leads the gateway out.
 */
import type { Stats } from 'node:fs';
import { lstat, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Exclusive } from '../core/concurrency.js';
import { describe, Fault } from '../core/errors.js';
import { codeOf, isMissing } from '../core/file-access.js';
import type { Log } from '../core/log.js';
import { daysOf, entryLine, hasEntry, isDate, type MemoryBudgets, withEntry } from '../core/memory.js';
import { type Origin, type Origins, originOf, originOfNotes, spacePath } from '../core/origin.js';
import { type AgentSpace, type Agents, isAgentId, type SessionLine } from '../core/task.js';
import { fileUpdater } from '../core/write-whole.js';
import { agentsIn, idIn, readAgent } from './agent-file.js';
import { appendLines, documentAt, ownFolder, readLines, realPathIn, removeSessions } from './inside.js';
import { createShownFiles } from './shown.js';

/** Of an agent's folder: its shared space, and those of chats. */
const SHARED = 'internal_space';
const CHATS = 'chats';
const MEMORY = 'MEMORY.md';
/** What MEMORY.md was once called (seed 004). */
const OLD_MEMORY = 'Note.md';
const DAYS = 'memories';
const DAILY = { perDay: 'internal-space-daily-per-day-max-chars', all: 'internal-space-daily-max-chars' };

export interface AgentsOnDisk extends Agents {
  /** Transcripts that nothing was added to since. */
  removeSessions(before: number, signal: AbortSignal): Promise<void>;
}

export function createAgents({
  folder,
  budgets,
  exclusive,
  origins,
  clean,
  log,
}: {
  /** `data/agents` */
  folder: string;
  budgets: MemoryBudgets;
  exclusive: Exclusive;
  /** Where lines of its files come from. */
  origins: Pick<Origins, 'originIn'>;
  /** Takes secrets out of a text, for transcripts. */
  clean: (text: string) => string;
  log: Log;
}): AgentsOnDisk {
  const update = fileUpdater(exclusive);
  const filesIn = createShownFiles(budgets, log);

  async function space({ agent: id, chatId }: AgentSpace): Promise<string> {
    if (chatId !== null && !isChatFolder(chatId)) throw noFolder(chatId, 'a chat');
    const path = chatId === null ? [SHARED] : [CHATS, chatId];
    if (chatId !== null) await ownFolder(join(folderOf(id), CHATS));
    const root = await ownFolder(join(folderOf(id), ...path));
    try {
      await ownFolder(join(root, DAYS));
      await makeMemory(root);
    } catch (error) {
      // What stands in the way is told of again when it is read; the agent works without it.
      log.warn({ agent: id, error: describe(error) }, 'an agent’s internal space is not whole');
    }
    return root;
  }

  function folderOf(id: string): string {
    if (isAgentId(id)) return join(folder, id);
    throw noFolder(id, 'an agent');
  }

  function originIn({ agent, chatId }: AgentSpace, file: string, text: string): Promise<Origin> {
    if (originOfNotes(text) === 'outside') return Promise.resolve('outside');
    return origins.originIn(spacePath(agent, chatId, file), () => text);
  }

  /** Of the whole of it: what a prompt shows may end before the note that says so. */
  async function originOfFile(of: AgentSpace, name: string): Promise<Origin> {
    const bytes = await documentAt(await space(of), name);
    return originIn(of, name, bytes?.toString('utf8') ?? '');
  }

  return {
    async find(given) {
      const { files } = await agentsIn(folder);
      const id = idIn(files.keys(), given.trim());
      const file = id === null ? undefined : files.get(id);
      if (id === null || file === undefined) {
        const shown = JSON.stringify(given.slice(0, 80));
        return {
          ok: false,
          reason: `There is no agent ${shown}; there are: ${[...files.keys()].join(', ')}.`,
        };
      }
      const read = await readAgent(folder, id, file);
      if (!read.ok) return { ok: false, reason: `The agent ${id} cannot be used: ${read.reason}` };
      for (const warning of read.warnings) log.warn({ agent: id }, warning);
      return { ok: true, agent: read.agent };
    },

    list: async () => [...(await agentsIn(folder)).files.keys()],

    space,

    async memory(of, today) {
      try {
        const files = await filesIn(await space(of));
        const { longTermMaxChars: max } = budgets;
        const longTerm = await files.text(MEMORY, max, ['internal-space-memory-max-chars', max]);
        const daily = await files.days(DAYS, today, DAILY);
        const found = await Promise.all([
          originOfFile(of, MEMORY),
          ...daysOf(daily).map(({ date }) => originOfFile(of, dayFile(date))),
        ]);
        return { longTerm, daily, origin: originOf(found.map((origin) => ({ origin }))) };
      } catch (error) {
        log.warn(
          { ...of, error: describe(error) },
          'an agent’s memory cannot be read; the prompt counts it as empty',
        );
        return { longTerm: '', daily: '', origin: 'inside' };
      }
    },

    async read(of, what) {
      const name = what === MEMORY ? MEMORY : dayFile(what.date);
      const text = (await documentAt(await space(of), name))?.toString('utf8') ?? '';
      return { text, origin: await originIn(of, name, text) };
    },

    async shownOf(of) {
      try {
        const files = await (await filesIn(await space(of))).all([MEMORY], DAYS);
        return new Map([...files].map(([file, text]) => [spacePath(of.agent, of.chatId, file), text]));
      } catch (error) {
        log.warn(
          { ...of, error: describe(error) },
          'an agent’s memory cannot be read; the prompt counts it as empty',
        );
        return new Map();
      }
    },

    async append(of, date, line, signal) {
      const entry = entryLine(line);
      const path = await realPathIn(await space(of), dayFile(date));
      await update(
        path,
        (current) => (entry === '' || hasEntry(current, entry) ? null : withEntry(current, entry)),
        signal,
      );
    },

    async log(id, session, lines) {
      try {
        const cleaned = lines.map((line): SessionLine => ({ ...line, content: clean(line.content) }));
        const sessions = join(folderOf(id), 'sessions');
        await exclusive(join(sessions, session), () => appendLines(sessions, session, cleaned));
      } catch (error) {
        log.warn({ agent: id, session, error: describe(error) }, 'writing a transcript failed');
      }
    },

    session: async (id, session) => readLines(join(folderOf(id), 'sessions'), session),

    removeSessions: (before, signal) => removeSessions(folder, before, signal),
  };
}

/** As the store makes the ids of chats: each is one safe name of a folder. */
function isChatFolder(chatId: string): boolean {
  return /^(?!\.)[A-Za-z0-9._@%-]{1,255}$/.test(chatId);
}

function noFolder(id: string, kind: string): Fault {
  const shown = JSON.stringify(id.slice(0, 80));
  return new Fault('memory_unavailable', `${shown} is not the id of ${kind}, so it has no folder`);
}

/** Empty, where there is none. */
async function makeMemory(root: string): Promise<void> {
  const path = join(root, MEMORY);
  const [now, old] = [await entryAt(path), await entryAt(join(root, OLD_MEMORY))];
  if (now !== null) return;
  if (old?.isFile()) return rename(join(root, OLD_MEMORY), path);
  await writeFile(path, '', { flag: 'wx', mode: 0o600 }).catch((error: unknown) => {
    // It has just been made elsewhere.
    if (codeOf(error) !== 'EEXIST') throw error;
  });
}

function entryAt(path: string): Promise<Stats | null> {
  return lstat(path).catch((error: unknown) => {
    if (isMissing(error)) return null;
    throw error;
  });
}

function dayFile(date: string): string {
  if (isDate(date)) return `${DAYS}/${date}.md`;
  const shown = JSON.stringify(date.slice(0, 80));
  throw new Fault('memory_unavailable', `${shown} is not a day (YYYY-MM-DD)`);
}
