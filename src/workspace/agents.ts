/** Agents on disk, `data/agents`. Their internal spaces are untrusted: no link leads out of them. */
import { lstat, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { daysOf, entryLine, hasEntry, isDate, withEntry } from '../core/daily-log.js';
import { describe, Fault } from '../core/errors.js';
import { codeOf, nullIfMissing } from '../core/file-access.js';
import type { Log } from '../core/log.js';
import { type Origin, originOf, originOfNotes, spacePath } from '../core/origin.js';
import { type AgentSpace, type Agents, isAgentId, sessionFile } from '../core/task.js';
import { fileUpdater } from '../core/write-whole.js';
import { agentsIn, idIn, readAgent } from './agent-file.js';
import { documentAt, ownFolder, realPathIn } from './inside.js';
import { appendLines, readLines, removeSessions } from './sessions.js';
import { createShownFiles, type FolderOptions } from './shown.js';

const MEMORY = 'MEMORY.md';
/** Former name of MEMORY.md (seed 004). */
const OLD_MEMORY = 'Note.md';
const DAYS = 'memories';

export interface AgentsOnDisk extends Agents {
  /** Removes transcripts unchanged since `before`. */
  removeSessions(before: number, signal: AbortSignal): Promise<void>;
}

/** `clean` redacts secrets in transcripts. */
export function createAgents(options: FolderOptions & { clean(text: string): string }): AgentsOnDisk {
  const { folder, budgets, exclusive, origins, clean, log } = options;
  const update = fileUpdater(exclusive);
  const filesIn = createShownFiles(budgets, log);
  const space = (of: AgentSpace) => spaceIn(folder, of, log);
  const sessionsOf = (id: string) => join(agentFolder(folder, id), 'sessions');

  async function read(of: AgentSpace, name: string): Promise<{ text: string; origin: Origin }> {
    const text = (await documentAt(await space(of), name))?.toString('utf8') ?? '';
    if (originOfNotes(text) === 'outside') return { text, origin: 'outside' };
    return { text, origin: await origins.originIn(spacePath(of.agent, of.chatId, name), () => text) };
  }

  /** No file prevents an answer. */
  async function orEmpty<Value>(of: AgentSpace, empty: Value, work: () => Promise<Value>): Promise<Value> {
    return work().catch((error) => {
      const fields = { ...of, error: describe(error) };
      log.warn(fields, 'an agent’s memory cannot be read; the prompt counts it as empty');
      return empty;
    });
  }

  return {
    find: (given) => findAgent(folder, given, log),

    list: async () => [...(await agentsIn(folder)).files.keys()],

    space,

    memory: (of, today) =>
      orEmpty(of, { longTerm: '', daily: '', origin: 'inside' }, async () => {
        const files = await filesIn(await space(of));
        const max = budgets.longTermMaxChars;
        const longTerm = await files.text(MEMORY, max, 'internal-space-memory-max-chars', max);
        const [perDay, all] = ['internal-space-daily-per-day-max-chars', 'internal-space-daily-max-chars'];
        const daily = await files.days(DAYS, today, perDay, all);
        // From whole files: the part in a prompt may end before the note on its origin.
        const shown = [MEMORY, ...daysOf(daily).map(({ date }) => dayFile(date))];
        return { longTerm, daily, origin: originOf(await Promise.all(shown.map((name) => read(of, name)))) };
      }),

    read: (of, what) => read(of, what === MEMORY ? MEMORY : dayFile(what.date)),

    shownOf: (of) =>
      orEmpty(of, new Map(), async () => {
        const files = await (await filesIn(await space(of))).all([MEMORY], DAYS);
        return new Map([...files].map(([file, text]) => [spacePath(of.agent, of.chatId, file), text]));
      }),

    async append(of, date, line, signal) {
      const entry = entryLine(line);
      const path = await realPathIn(await space(of), dayFile(date));
      const isThere = (current: Buffer | null) => entry === '' || hasEntry(current, entry);
      await update(path, (current) => (isThere(current) ? null : withEntry(current, entry)), signal);
    },

    async log(id, session, lines) {
      try {
        const sessions = sessionsOf(id);
        const cleaned = lines.map((line) => ({ ...line, content: clean(line.content) }));
        await exclusive(join(sessions, sessionFile(session)), () => appendLines(sessions, session, cleaned));
      } catch (error) {
        log.warn({ agent: id, session, error: describe(error) }, 'writing a transcript failed');
      }
    },

    session: async (id, session) => readLines(sessionsOf(id), session),

    removeSessions: (before, signal) => removeSessions(folder, before, signal),
  };
}

async function findAgent(folder: string, given: string, log: Log): ReturnType<Agents['find']> {
  const { files } = await agentsIn(folder);
  const id = idIn(files.keys(), given.trim());
  if (id === null) {
    const shown = JSON.stringify(given.slice(0, 80));
    return { ok: false, reason: `There is no agent ${shown}; there are: ${[...files.keys()].join(', ')}.` };
  }
  const read = await readAgent(folder, id, files.get(id) ?? null);
  if (!read.ok) return { ok: false, reason: `The agent ${id} cannot be used: ${read.reason}` };
  for (const warning of read.warnings) log.warn({ agent: id }, warning);
  return { ok: true, agent: read.agent };
}

/** The real path of an agent's internal space; creates it if missing. */
async function spaceIn(folder: string, { agent: id, chatId }: AgentSpace, log: Log): Promise<string> {
  // The form of the store's chat ids: each is one safe folder name.
  if (chatId !== null && !/^(?!\.)[A-Za-z0-9._@%-]{1,255}$/.test(chatId)) throw noFolder(chatId, 'a chat');
  const own = agentFolder(folder, id);
  if (chatId !== null) await ownFolder(join(own, 'chats'));
  const root = await ownFolder(chatId === null ? join(own, 'internal_space') : join(own, 'chats', chatId));
  try {
    await ownFolder(join(root, DAYS));
    await makeMemory(root);
  } catch (error) {
    // Reading it reports the problem again; the agent works without it.
    log.warn({ agent: id, error: describe(error) }, 'an agent’s internal space is not whole');
  }
  return root;
}

function agentFolder(folder: string, id: string): string {
  if (isAgentId(id)) return join(folder, id);
  throw noFolder(id, 'an agent');
}

function noFolder(id: string, kind: string): Fault {
  const shown = JSON.stringify(id.slice(0, 80));
  return new Fault('memory_unavailable', `${shown} is not the id of ${kind}, so it has no folder`);
}

/** Creates an empty MEMORY.md if missing. */
async function makeMemory(root: string): Promise<void> {
  const path = join(root, MEMORY);
  const old = await lstat(join(root, OLD_MEMORY)).catch(nullIfMissing);
  if ((await lstat(path).catch(nullIfMissing)) !== null) return;
  if (old?.isFile()) return rename(join(root, OLD_MEMORY), path);
  await writeFile(path, '', { flag: 'wx', mode: 0o600 }).catch((error: unknown) => {
    // Somebody else has just created it.
    if (codeOf(error) !== 'EEXIST') throw error;
  });
}

function dayFile(date: string): string {
  if (isDate(date)) return `${DAYS}/${date}.md`;
  const shown = JSON.stringify(date.slice(0, 80));
  throw new Fault('memory_unavailable', `${shown} is not a day (YYYY-MM-DD)`);
}
