/** Reads files in folders that agents write: nothing outside, even if a name becomes a link meanwhile. */

import { constants } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, readdir, realpath, rm, stat } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { entryOf, openFile, within } from '../core/beneath.js';
import { sizeInWords } from '../core/cut.js';
import { Fault } from '../core/errors.js';
import { codeOf, isMissing, unavailable } from '../core/file-access.js';
import { type SessionLine, sessionFile } from '../core/task.js';
import { MOST_DOCUMENT_BYTES } from '../core/workspace.js';

/** The real path of one of the gateway's own folders; creates it if missing, accessible only to its owner. */
export async function ownFolder(folder: string): Promise<string> {
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return await realpath(folder);
  } catch (error) {
    throw unavailable('write', folder, codeOf(error) === 'EEXIST' ? { code: 'ENOTDIR' } : error);
  }
}

/** The real path of a name below a real folder, existing or not. Throws a Fault if it leads out. */
export async function realPathIn(root: string, name: string): Promise<string> {
  const path = join(root, name);
  try {
    const real = await realpath(path).catch(nullIfMissing);
    if (real !== null) {
      if (real.startsWith(root + sep)) return real;
      throw new Fault('memory_unavailable', `${path} is a link that leads out of ${root}; remove it`);
    }
    if ((await lstat(path).catch(nullIfMissing)) !== null)
      throw new Fault('memory_unavailable', `${path} is a link that leads nowhere; remove it`);
  } catch (error) {
    throw unavailable('read', path, error);
  }
  const at = name.lastIndexOf('/');
  if (at < 0) return path;
  return join(await realPathIn(root, name.slice(0, at)), name.slice(at + 1));
}

export interface Beginning {
  bytes: Buffer;
  /** False: the file is longer. */
  isWhole: boolean;
}

/** A file's first bytes; null if missing. Throws Fault `memory_unavailable` for anything but a file. */
export async function beginningOf(root: string, name: string, most: number): Promise<Beginning | null> {
  const real = await realPathIn(root, name);
  const names = relative(root, real).split(sep);
  try {
    return await within(root, names.slice(0, -1), async (folder) => {
      const last = names.at(-1) ?? '';
      if ((await lstat(entryOf(folder, last))).isDirectory())
        throw unavailable('read', real, { code: 'EISDIR' });
      const file = await openFile(folder, last);
      if (file === null) {
        throw new Fault('memory_unavailable', `Cannot read ${real}: it is a pipe or a device; move it away`);
      }
      try {
        // One extra byte tells whether there is more.
        const bytes = Buffer.alloc(most + 1);
        let read = 0;
        while (read < bytes.length) {
          const { bytesRead } = await file.read(bytes, read, bytes.length - read, read);
          if (bytesRead === 0) break;
          read += bytesRead;
        }
        return { bytes: Buffer.from(bytes.subarray(0, Math.min(read, most))), isWhole: read <= most };
      } finally {
        await file.close();
      }
    });
  } catch (error) {
    if (isMissing(error) || codeOf(error) === 'ENOTDIR') return null;
    throw unavailable('read', real, error);
  }
}

/** A whole document; null if missing. */
export async function documentAt(root: string, name: string): Promise<Buffer | null> {
  const found = await beginningOf(root, name, MOST_DOCUMENT_BYTES);
  if (found === null || found.isWhole) return found?.bytes ?? null;
  const most = sizeInWords(MOST_DOCUMENT_BYTES);
  throw new Fault(
    'memory_unavailable',
    `Cannot read ${join(root, name)}: it is larger than ${most}; shorten it`,
  );
}

/** The names in a folder; empty if it does not exist. */
export async function namesBelow(root: string, name: string): Promise<string[]> {
  const real = await realPathIn(root, name);
  try {
    return await readdir(real);
  } catch (error) {
    if (isMissing(error)) return [];
    throw unavailable('read', real, error);
  }
}

function nullIfMissing(error: unknown): null {
  if (isMissing(error)) return null;
  throw error;
}

/** Only the newest lines of a longer file are read. */
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

/** False if a process died while writing: then only that line is lost. */
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
      if (!name.endsWith('.jsonl')) continue;
      const path = join(folder, name);
      const found = await stat(path).catch(() => null);
      if (found?.isFile() && found.mtimeMs < before) await rm(path, { force: true });
    }
  }
}

/** Empty if the folder does not exist or is something else. */
async function namesOf(folder: string): Promise<string[]> {
  return readdir(folder).catch(() => []);
}
