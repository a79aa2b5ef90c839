/**
 * Puts a file where nothing stands. What is there is never changed: the new one then stands beside it, as
 * `MEMORY.imported.md`, `MEMORY.imported-2.md`, …; the same content is not put there twice. Each file appears whole, so
 * that a gateway that runs meanwhile, and writes and reads in the same folders, sees either all of it or nothing.
 */
import { randomUUID } from 'node:crypto';
import { link, lstat, mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { basename, dirname, extname, join } from 'node:path';

export type Put =
  | { kind: 'new' | 'beside' | 'same'; path: string }
  | { kind: 'impossible'; path: string; why: string };

export async function put(
  path: string,
  content: { bytes: Buffer; isExecutable: boolean },
  isAlwaysBeside: boolean,
): Promise<Put> {
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    for (let number = isAlwaysBeside ? 1 : 0; ; number++) {
      const at = besideAs(path, number);
      if (await holds(at, content.bytes)) return { kind: 'same', path: at };
      if (await putIfFree(at, content)) return { kind: number === 0 ? 'new' : 'beside', path: at };
      // Another import may have been faster with the very same.
      if (await holds(at, content.bytes)) return { kind: 'same', path: at };
    }
  } catch (error) {
    return { kind: 'impossible', path, why: error instanceof Error ? error.message : String(error) };
  }
}

/** 0: under its own name. */
function besideAs(path: string, number: number): string {
  if (number === 0) return path;
  const end = extname(path);
  const stem = basename(path, end);
  return join(dirname(path), `${stem}.imported${number === 1 ? '' : `-${number}`}${end}`);
}

async function holds(path: string, bytes: Buffer): Promise<boolean> {
  const found = await lstat(path).catch(() => null);
  if (found === null || !found.isFile() || found.size !== bytes.length) return false;
  return (await readFile(path)).equals(bytes);
}

/** False: something stands there. */
async function putIfFree(
  path: string,
  { bytes, isExecutable }: { bytes: Buffer; isExecutable: boolean },
): Promise<boolean> {
  if ((await lstat(path).catch(() => null)) !== null) return false;
  const temporary = join(dirname(path), `.import-${randomUUID()}.tmp`);
  try {
    const file = await open(temporary, 'wx', isExecutable ? 0o700 : 0o600);
    try {
      await file.writeFile(bytes);
      await file.sync();
    } finally {
      await file.close();
    }
    return await takeName(temporary, path);
  } finally {
    await rm(temporary, { force: true });
  }
}

/** A link is made only where nothing stands. Some disks know none: there a look before has to do. */
async function takeName(temporary: string, path: string): Promise<boolean> {
  try {
    await link(temporary, path);
    return true;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : null;
    if (code === 'EEXIST') return false;
    if (code !== 'EPERM' && code !== 'ENOTSUP' && code !== 'ENOSYS') throw error;
    await rename(temporary, path);
    return true;
  }
}
