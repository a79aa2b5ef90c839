/**
 * Transcripts of agents, `data/agents/<id>/sessions/<session>.jsonl`: a line a message, only ever added to. Nothing
 * depends on them; they are for whoever wants to know what an agent was told and said.
 */
import { constants } from 'node:fs';
import { type FileHandle, mkdir, open, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type SessionLine, sessionFile } from '../core/agents.js';
import { isMissing, unavailable } from '../core/file-access.js';

/** Of a longer one the newest lines are read. */
const MOST_BYTES = 8_000_000;
const { O_APPEND, O_CREAT, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_RDWR } = constants;

/** Throws Fault `memory_unavailable`. */
export async function appendLines(
  folder: string,
  session: string,
  lines: readonly SessionLine[],
): Promise<void> {
  if (lines.length === 0) return;
  const path = join(folder, sessionFile(session));
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const file = await open(path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0o600);
    try {
      const text = lines
        .map(({ role, content, ts }) => `${JSON.stringify({ role, content, ts })}\n`)
        .join('');
      await file.appendFile((await endsInLine(file)) ? text : `\n${text}`);
    } finally {
      await file.close();
    }
  } catch (error) {
    throw unavailable('write', path, error);
  }
}

/** False where a process died while it wrote: then that line alone is lost. */
async function endsInLine(file: FileHandle): Promise<boolean> {
  const { size } = await file.stat();
  if (size === 0) return true;
  const last = Buffer.alloc(1);
  await file.read(last, 0, 1, size - 1);
  return last[0] === 0x0a;
}

export async function readLines(folder: string, session: string): Promise<SessionLine[]> {
  const path = join(folder, sessionFile(session));
  try {
    const file = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    try {
      const { size } = await file.stat();
      const bytes = Buffer.alloc(Math.min(size, MOST_BYTES));
      const { bytesRead } = await file.read(bytes, 0, bytes.length, size - bytes.length);
      return bytes.subarray(0, bytesRead).toString('utf8').split('\n').flatMap(parsed);
    } finally {
      await file.close();
    }
  } catch (error) {
    if (isMissing(error)) return [];
    throw unavailable('read', path, error);
  }
}

function parsed(line: string): SessionLine[] {
  try {
    const value: unknown = JSON.parse(line);
    return isLine(value) ? [{ role: value.role, content: value.content, ts: value.ts }] : [];
  } catch {
    // Cut off by a crash, or written by hand.
    return [];
  }
}

function isLine(value: unknown): value is SessionLine {
  if (typeof value !== 'object' || value === null) return false;
  const { role, content, ts } = value as Partial<SessionLine>;
  const isRole = role === 'user' || role === 'assistant' || role === 'system';
  return isRole && typeof content === 'string' && typeof ts === 'number';
}

/** Removes those of all agents that nothing was added to since. */
export async function removeSessions(
  agentsFolder: string,
  before: number,
  signal: AbortSignal,
): Promise<void> {
  for (const agent of await namesOf(agentsFolder)) {
    const folder = join(agentsFolder, agent, 'sessions');
    for (const name of await namesOf(folder)) {
      if (signal.aborted) return;
      if (!name.endsWith('.jsonl')) continue;
      const path = join(folder, name);
      const found = await stat(path).catch(() => null);
      if (found?.isFile() && found.mtimeMs < before) await rm(path, { force: true });
    }
  }
}

/** None where there is no such folder, or another thing has its name. */
async function namesOf(folder: string): Promise<string[]> {
  return readdir(folder).catch(() => []);
}
