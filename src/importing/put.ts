/**
 * Puts a file where nothing stands. What is there is never changed: the new one then stands beside it, as
 * `MEMORY.imported.md`, `MEMORY.imported-2.md`, …; the same content is not put there twice. Each file appears whole, so
 * that a gateway that runs meanwhile, and writes and reads in the same folders, sees either all of it or nothing.
 */
import { createHash, randomUUID } from 'node:crypto';
import { link, lstat, mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, extname, join } from 'node:path';

export type Put =
  | { kind: 'new' | 'beside' | 'same'; path: string }
  | { kind: 'impossible'; path: string; why: string };

interface Content {
  bytes: Buffer;
  isExecutable: boolean;
}

/** The disk; or a plan of it, where nothing is written and what would stand there is kept in mind. */
export interface Target {
  holds(path: string, bytes: Buffer): Promise<boolean>;
  putIfFree(path: string, content: Content): Promise<boolean>;
}

export async function put(
  target: Target,
  path: string,
  content: Content,
  isAlwaysBeside: boolean,
): Promise<Put> {
  try {
    for (let number = isAlwaysBeside ? 1 : 0; ; number++) {
      const at = besideAs(path, number);
      if (await target.holds(at, content.bytes)) return { kind: 'same', path: at };
      if (await target.putIfFree(at, content)) return { kind: number === 0 ? 'new' : 'beside', path: at };
      // Another import may have been faster with the very same.
      if (await target.holds(at, content.bytes)) return { kind: 'same', path: at };
    }
  } catch (error) {
    return { kind: 'impossible', path, why: error instanceof Error ? error.message : String(error) };
  }
}

export const DISK: Target = { holds, putIfFree };

export function createPlanned(): Target {
  const planned = new Map<string, string>();
  return {
    holds: async (path, bytes) => planned.get(path) === hashOf(bytes) || holds(path, bytes),
    async putIfFree(path, { bytes }) {
      await refuseUnlessFolder(dirname(path));
      if (planned.has(path) || (await isTaken(path))) return false;
      planned.set(path, hashOf(bytes));
      return true;
    },
  };
}

function hashOf(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** Throws where no folder can be made: something else stands in its way. */
async function refuseUnlessFolder(path: string): Promise<void> {
  const found = await stat(path).catch(() => null);
  if (found?.isDirectory()) return;
  if (found !== null) throw new Error(`${path} is no folder`);
  if (dirname(path) !== path) await refuseUnlessFolder(dirname(path));
}

/** 0: under its own name. Archives have numbers of their own, by which they are known as such. */
function besideAs(path: string, number: number): string {
  if (number === 0) return path;
  const [, time, persona] = /^(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d)-(.+\.md)$/.exec(basename(path)) ?? [];
  if (time !== undefined) return join(dirname(path), `${time}_${number + 1}-${persona}`);
  const end = extname(path);
  const stem = basename(path, end);
  return join(dirname(path), `${stem}.imported${number === 1 ? '' : `-${number}`}${end}`);
}

async function isTaken(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => null)) !== null;
}

async function holds(path: string, bytes: Buffer): Promise<boolean> {
  const found = await lstat(path).catch(() => null);
  if (found === null || !found.isFile() || found.size !== bytes.length) return false;
  return (await readFile(path)).equals(bytes);
}

/** False: something stands there. */
async function putIfFree(path: string, { bytes, isExecutable }: Content): Promise<boolean> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  if (await isTaken(path)) return false;
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
