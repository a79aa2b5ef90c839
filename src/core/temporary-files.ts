/**
 * Temporary files, beside those they will replace: `.MEMORY.md.<process>-<number>.tmp`. A crash leaves them behind with
 * their content.
 */
import { type FileHandle, lstat, open, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { codeOf, isMissing, namesIn, unavailable } from './file-access.js';

export interface Temporary {
  path: string;
  file: FileHandle;
}

/** Creates a new file, exclusive to this writer, in the folder of the file it will become. */
export async function openTemporary(target: string): Promise<Temporary> {
  for (let number = 1; ; number++) {
    const path = join(dirname(target), `.${basename(target)}.${process.pid}-${number}.tmp`);
    try {
      return { path, file: await open(path, 'wx+', 0o600) };
    } catch (error) {
      // It belongs to another writer, or a crash left it.
      if (codeOf(error) !== 'EEXIST') throw error;
    }
  }
}

/** Removes temporary files that earlier processes left in a folder, of the files for which `isMeant` is true. */
export async function removeLeftOvers(folder: string, isMeant: (name: string) => boolean): Promise<void> {
  for (const name of await namesIn(folder)) {
    const target = /^\.(.+)\.\d+-\d+\.tmp$/.exec(name)?.[1];
    if (target === undefined || !isMeant(target)) continue;
    const path = join(folder, name);
    try {
      if ((await lstat(path)).mtimeMs < performance.timeOrigin) await rm(path, { force: true });
    } catch (error) {
      if (!isMissing(error)) throw unavailable('write', path, error);
    }
  }
}
