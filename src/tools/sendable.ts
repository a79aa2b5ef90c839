/**
 * Which file a path of a model's means, for `send_message`: one of the chat's own, wherever its links lead in the end.
 * A path that leads out of them is refused before anybody looks whether something lies there.
 */
import { readdir, realpath, stat } from 'node:fs/promises';
import { basename, join, relative, resolve, sep } from 'node:path';
import type { OutgoingFile } from '../core/channel.js';

export type Sendable =
  | { kind: 'file'; file: OutgoingFile }
  /** It may not be sent from here, whether it is there or not. */
  | { kind: 'forbidden' }
  | { kind: 'missing' };

/** `roots` are the folders that the path may be relative to, in this order, and that it must lie in. */
export async function findSendable(path: string, roots: string[]): Promise<Sendable> {
  if (path.includes('\0')) return { kind: 'forbidden' };
  const places = roots
    .map((root) => ({ root, at: resolve(root, path) }))
    .filter(({ root, at }) => lies(at, root));
  if (places.length === 0) return { kind: 'forbidden' };
  const realRoots = (await Promise.all(roots.map(realPath))).filter((root) => root !== null);
  for (const { at } of places) {
    const real = await realPath(at);
    if (real === null) continue;
    if (!realRoots.some((root) => lies(real, root))) return { kind: 'forbidden' };
    if ((await stat(real)).isFile()) return { kind: 'file', file: { path: real, name: basename(at) } };
  }
  return { kind: 'missing' };
}

/** In the folder or below it, and nowhere where a program keeps what nobody is to see. */
function lies(path: string, root: string): boolean {
  const below = relative(root, path).split(sep);
  return below.every((name) => name !== '' && !name.startsWith('.'));
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

export interface Lying {
  name: string;
  bytes: number;
  /** Since when, ms. */
  at: number;
}

/** The newest files in a folder; none where there is no folder. */
export async function newestIn(folder: string, most: number): Promise<Lying[]> {
  const names = (await realPath(folder)) === null ? [] : await readdir(folder);
  const found: Lying[] = [];
  for (const name of names) {
    const real = name.endsWith('.tmp') ? null : await realPath(join(folder, name));
    if (real === null) continue;
    const { size, mtimeMs } = await stat(real);
    found.push({ name, bytes: size, at: mtimeMs });
  }
  return found.sort((one, other) => other.at - one.at).slice(0, most);
}
