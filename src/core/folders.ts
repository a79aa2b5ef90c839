/** Folders by their real paths, and whether a path lies inside one. */
import { mkdir, realpath } from 'node:fs/promises';
import { basename, dirname, join, sep } from 'node:path';
import { codeOf } from './file-access.js';

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
