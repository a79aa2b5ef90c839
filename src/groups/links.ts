/** Where a path leads in the end: what is written through a link is written at its target. */
import { lstat, readlink, realpath } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { isMissing, unavailable } from './disk.js';

const MAX_LINKS = 40;

/** Also when nothing is there yet: a link to a missing file is written at its target. */
export async function followLinks(path: string): Promise<string> {
  let at = resolve(path);
  try {
    for (let links = 0; links < MAX_LINKS; links++) {
      try {
        return await realpath(at);
      } catch (error) {
        if (!isMissing(error)) throw error;
      }
      const next = await linkTarget(at);
      if (next === null) return at;
      at = next;
    }
  } catch (error) {
    throw unavailable('write', path, error);
  }
  throw unavailable('write', path, { code: 'ELOOP' });
}

async function linkTarget(path: string): Promise<string | null> {
  try {
    const found = await lstat(path);
    return found.isSymbolicLink() ? resolve(dirname(path), await readlink(path)) : null;
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}
