/** Reads files that anybody may have put there: directories, pipes and link loops cause a Fault instead of a hang. */
import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  type Stats,
  statSync,
} from 'node:fs';
import { mkdir, readFile, realpath } from 'node:fs/promises';
import { basename, dirname, join, sep } from 'node:path';
import { setImmediate as nextPass } from 'node:timers/promises';
import { Fault } from './errors.js';

/** Not plausible as memory. */
const MAX_BYTES = 64 * 1024 * 1024;
/** For small files, the thread pool costs several times the read. */
const SMALL_BYTES = 256 * 1024;

const HINTS: Record<string, string> = {
  ENOSPC: 'the disk is full; free some space',
  EDQUOT: 'the disk quota is used up; free some space',
  EFBIG: 'the file would exceed the size limit of this process',
  EISDIR: 'a directory stands where a file is expected; move it away',
  ENOTDIR: 'a file stands where a folder is expected; move it away',
  ELOOP: 'its links lead in a circle; remove them',
  EACCES: 'access is denied; give the user that runs the gateway the right to it',
  EPERM: 'that is not permitted; give the user that runs the gateway the right to it',
  EROFS: 'the file system is read-only',
};

/** The file, or only its first bytes; null if it is missing. Throws Fault `memory_unavailable`. */
export async function readIfThere(path: string, first?: number): Promise<Buffer | null> {
  try {
    // Without O_NONBLOCK, opening a pipe would wait for a writer.
    const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const found = fstatSync(file);
      if (found.isDirectory()) throw unavailable('read', path, { code: 'EISDIR' });
      if (!found.isFile()) throw unusable(path, 'it is a pipe or a device; move it away');
      if (first !== undefined) {
        const bytes = Buffer.alloc(Math.min(first, found.size));
        return bytes.subarray(0, readSync(file, bytes, 0, bytes.length, 0));
      }
      if (found.size > MAX_BYTES) throw unusable(path, 'it is larger than 64 MB; shorten it');
      const bytes = found.size <= SMALL_BYTES ? readFileSync(file) : await readFile(path);
      if (isUtf16(bytes)) throw unusable(path, 'it is UTF-16; save it as UTF-8');
      return bytes;
    } finally {
      closeSync(file);
    }
  } catch (error) {
    // A path below a file is missing, too; a write there reports the error.
    if (isMissing(error) || codeOf(error) === 'ENOTDIR') return null;
    throw unavailable('read', path, error);
  }
}

/** Empty if missing. */
export async function namesIn(folder: string): Promise<string[]> {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (isMissing(error)) return [];
    throw unavailable('read', folder, error);
  }
}

/** Follows links. */
export function statIfThere(path: string): Stats | null {
  try {
    return statSync(path, { throwIfNoEntry: false }) ?? null;
  } catch (error) {
    throw unavailable('read', path, error);
  }
}

/** `unclear`: a link loop, or no access. */
export function isFolder(path: string, unclear: boolean): boolean {
  try {
    return statIfThere(path)?.isDirectory() ?? false;
  } catch {
    return unclear;
  }
}

export async function* unhurried<Item>(items: Iterable<Item>, atOnce: number): AsyncGenerator<Item> {
  let n = 0;
  for (const item of items) {
    yield item;
    if (++n % atOnce === 0) await nextPass();
  }
}

export function unavailable(action: 'read' | 'write', path: string, error: unknown): Fault {
  if (error instanceof Fault) return error;
  const hint = HINTS[codeOf(error)];
  return new Fault(
    'memory_unavailable',
    `Cannot ${action} ${path}${hint ? `: ${hint}` : ''}`,
    hint ? undefined : error,
  );
}

function unusable(path: string, reason: string): Fault {
  return new Fault('memory_unavailable', `Cannot read ${path}: ${reason}`);
}

export function isMissing(error: unknown): boolean {
  return codeOf(error) === 'ENOENT';
}

/** For `catch`. */
export function nullIfMissing(error: unknown): null {
  if (isMissing(error)) return null;
  throw error;
}

export function codeOf(error: unknown): string {
  return typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : '';
}

function isUtf16(bytes: Buffer): boolean {
  return (bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff);
}

/** By names: `/a/bc` is not within `/a/b`. */
export function isWithin(path: string, folder: string): boolean {
  return path === folder || isBelow(path, folder);
}

export function isBelow(path: string, folder: string): boolean {
  return path.startsWith(folder.endsWith(sep) ? folder : folder + sep) && path !== folder;
}

/** Created if missing, for the gateway's user only. Links resolved. */
export async function made(...names: [string, ...string[]]): Promise<string> {
  const folder = join(...names);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  return realpath(folder);
}

/** Links resolved; null if it does not exist, or cannot be reached. */
export async function realOrNull(path: string): Promise<string | null> {
  return realpath(path).catch(() => null);
}

export async function realOnes(paths: readonly string[]): Promise<string[]> {
  return (await Promise.all(paths.map(realOrNull))).filter((path) => path !== null);
}

/** Links resolved as far as the path exists; further names, or one in a loop of links, as they are. */
export async function realAsFarAsThere(path: string): Promise<string> {
  const found = await realpath(path).catch((error: unknown) => codeOf(error));
  if (found !== 'ENOENT') return found.startsWith(sep) ? found : path;
  return join(await realAsFarAsThere(dirname(path)), basename(path));
}
