/**
 * Which file a path of a model's means, for `send_message`: one of the chat's own, wherever its links lead in the end.
 * A path that leads out of them is refused before anybody looks whether there is a file.
 */
import { readdir, realpath, stat } from 'node:fs/promises';
import { basename, join, relative, resolve, sep } from 'node:path';
import type { OutgoingFile } from '../core/channel.js';

export type FoundFile =
  | { kind: 'file'; file: OutgoingFile }
  /** It may not be sent from here, whether it is there or not. */
  | { kind: 'forbidden' }
  | { kind: 'missing' };

/** `roots` are the folders that the path may be relative to, in this order, and that it must lie in. */
export async function findFile(path: string, roots: string[]): Promise<FoundFile> {
  if (path.includes('\0')) return { kind: 'forbidden' };
  const candidates = roots
    .map((root) => ({ root, full: resolve(root, path) }))
    .filter(({ root, full }) => isBelow(full, root));
  if (candidates.length === 0) return { kind: 'forbidden' };
  const realRoots = (await Promise.all(roots.map(realPath))).filter((root) => root !== null);
  for (const { full } of candidates) {
    const real = await realPath(full);
    if (real === null) continue;
    if (!realRoots.some((root) => isBelow(real, root))) return { kind: 'forbidden' };
    if ((await stat(real)).isFile()) return { kind: 'file', file: { path: real, name: basename(full) } };
  }
  return { kind: 'missing' };
}

/** At any depth, but in no hidden folder: programs keep there what nobody is to see. */
function isBelow(path: string, root: string): boolean {
  const names = relative(root, path).split(sep);
  return names.every((name) => name !== '' && !name.startsWith('.'));
}

async function realPath(path: string): Promise<string | null> {
  try {
    return await realpath(path);
  } catch (error) {
    if (error instanceof Error && 'code' in error && NOTHING_THERE.has(String(error.code))) return null;
    throw error;
  }
}

const NOTHING_THERE = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG']);

export interface ListedFile {
  name: string;
  bytes: number;
  /** When it was last written, ms. */
  at: number;
}

/** The newest files of a folder; none where there is no folder. */
export async function newestFiles(folder: string, most: number): Promise<ListedFile[]> {
  const names = (await realPath(folder)) === null ? [] : await readdir(folder);
  const found: ListedFile[] = [];
  for (const name of names) {
    const real = name.endsWith('.tmp') ? null : await realPath(join(folder, name));
    if (real === null) continue;
    const { size, mtimeMs } = await stat(real);
    found.push({ name, bytes: size, at: mtimeMs });
  }
  return found.sort((one, other) => other.at - one.at).slice(0, most);
}
