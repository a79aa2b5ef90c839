/** Reads files in folders that agents write: nothing outside, even if a name becomes a link meanwhile. */
import { lstat, mkdir, readdir, realpath } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { entryOf, openFile, within } from '../core/beneath.js';
import { sizeInWords } from '../core/cut.js';
import { Fault } from '../core/errors.js';
import { codeOf, isMissing, nullIfMissing, unavailable } from '../core/file-access.js';
import { MOST_FILE_BYTES } from '../core/workspace.js';

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
    if (real?.startsWith(root + sep)) return real;
    if (real !== null) throw unsafe(`${path} is a link that leads out of ${root}; remove it`);
    if ((await lstat(path).catch(nullIfMissing)) !== null)
      throw unsafe(`${path} is a link that leads nowhere; remove it`);
  } catch (error) {
    throw unavailable('read', path, error);
  }
  const at = name.lastIndexOf('/');
  return at < 0 ? path : join(await realPathIn(root, name.slice(0, at)), name.slice(at + 1));
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
  const last = names.pop() ?? '';
  try {
    return await within(root, names, async (folder) => {
      if ((await lstat(entryOf(folder, last))).isDirectory())
        throw unavailable('read', real, { code: 'EISDIR' });
      const file = await openFile(folder, last);
      if (file === null) throw unsafe(`Cannot read ${real}: it is a pipe or a device; move it away`);
      try {
        // One extra byte tells whether there is more.
        const { bytesRead, buffer } = await file.read(Buffer.alloc(most + 1), 0, most + 1, 0);
        return {
          bytes: Buffer.from(buffer.subarray(0, Math.min(bytesRead, most))),
          isWhole: bytesRead <= most,
        };
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
  const found = await beginningOf(root, name, MOST_FILE_BYTES);
  if (found === null || found.isWhole) return found?.bytes ?? null;
  const most = sizeInWords(MOST_FILE_BYTES);
  throw unsafe(`Cannot read ${join(root, name)}: it is larger than ${most}; shorten it`);
}

/** Empty if the folder does not exist. */
export async function namesBelow(root: string, name: string): Promise<string[]> {
  const real = await realPathIn(root, name);
  return readdir(real).catch((error: unknown) => {
    if (isMissing(error)) return [];
    throw unavailable('read', real, error);
  });
}

function unsafe(message: string): Fault {
  return new Fault('memory_unavailable', message);
}
