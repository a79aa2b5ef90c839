/** Transcripts of agents: `sessions/<session>.jsonl`. */
import { constants } from 'node:fs';
import { type FileHandle, mkdir, open, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import { isMissing, unavailable } from '../core/file-access.js';
import { type SessionLine, sessionFile } from '../core/task.js';

/** Only the newest lines of a longer file are read. */
const MOST_BYTES = 8_000_000;
const { O_APPEND, O_CREAT, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_RDWR } = constants;

const LINE = z.object({ role: z.enum(['user', 'assistant', 'system']), content: z.string(), ts: z.number() });

/** Throws Fault `memory_unavailable`. */
export async function appendLines(folder: string, session: string, lines: SessionLine[]): Promise<void> {
  if (lines.length === 0) return;
  const path = join(folder, sessionFile(session));
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const file = await open(path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0o600);
    try {
      const text = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
      await file.appendFile((await endsInLine(file)) ? text : `\n${text}`);
    } finally {
      await file.close();
    }
  } catch (error) {
    throw unavailable('write', path, error);
  }
}

/** False if a process died while writing: then only that line is lost. */
async function endsInLine(file: FileHandle): Promise<boolean> {
  const { size } = await file.stat();
  if (size === 0) return true;
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 1);
  return buffer[0] === 0x0a;
}

export async function readLines(folder: string, session: string): Promise<SessionLine[]> {
  const path = join(folder, sessionFile(session));
  try {
    const file = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    try {
      const { size } = await file.stat();
      const length = Math.min(size, MOST_BYTES);
      const { bytesRead, buffer } = await file.read(Buffer.alloc(length), 0, length, size - length);
      return buffer.toString('utf8', 0, bytesRead).split('\n').flatMap(parsed);
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
    return [LINE.parse(JSON.parse(line))];
  } catch {
    // Cut off by a crash, or written by hand.
    return [];
  }
}

/** Removes all agents' transcripts unchanged since `before`. */
export async function removeSessions(
  agentsFolder: string,
  before: number,
  signal: AbortSignal,
): Promise<void> {
  for (const agent of await namesOf(agentsFolder)) {
    const folder = join(agentsFolder, agent, 'sessions');
    for (const name of await namesOf(folder)) {
      if (signal.aborted) return;
      const found = name.endsWith('.jsonl') ? await stat(join(folder, name)).catch(() => null) : null;
      if (found?.isFile() && found.mtimeMs < before) await rm(join(folder, name), { force: true });
    }
  }
}

/** Empty if the folder does not exist or is something else. */
async function namesOf(folder: string): Promise<string[]> {
  return readdir(folder).catch(() => []);
}
