/**
 * Looks for the files that an agent's report names: inside the folders that it could reach, links followed. What lies
 * outside of them is not opened.
 */
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open, realpath } from 'node:fs/promises';
import { basename, dirname, isAbsolute, resolve, sep } from 'node:path';
import type { AgentPlace } from '../core/tool.js';
import type { FindFile, FoundFile } from './viap/complete.js';

/** Of a longer file no sum is made. */
const MOST_BYTES = 2_000_000_000;

export const findArtifact: FindFile = async (path, place, isSummed) => {
  if (path.includes('\0')) return MISSING;
  let end: FoundFile = MISSING;
  for (const candidate of candidatesOf(path, place)) {
    const found = await look(candidate, place.roots, isSummed);
    if (found.kind === 'there') return found;
    if (found.kind === 'outside') end = found;
  }
  return end;
};

const MISSING: FoundFile = { kind: 'missing' };
const OUTSIDE: FoundFile = { kind: 'outside' };

/**
 * A relative path starts at the working folder; one that begins with a root's own name (`artifacts/…`, or `artifacts/ID/…`
 * where that alone is reached) may mean that root.
 */
function candidatesOf(path: string, { cwd, roots }: AgentPlace): string[] {
  if (isAbsolute(path)) return [resolve(path)];
  const start = cwd ?? roots[0];
  const [first, second] = path.split('/');
  const named = roots.flatMap((root) => {
    const above = dirname(root);
    if (basename(root) === first) return [resolve(above, path)];
    return basename(root) === second && basename(above) === first ? [resolve(dirname(above), path)] : [];
  });
  return [...(start === undefined ? [] : [resolve(start, path)]), ...named];
}

async function look(path: string, roots: readonly string[], isSummed: boolean): Promise<FoundFile> {
  let real: string;
  try {
    real = await realpath(path);
  } catch (error) {
    if (!isGone(error)) throw error;
    return isInside(path, roots) ? MISSING : OUTSIDE;
  }
  if (!isInside(real, roots)) return OUTSIDE;
  return read(real, isSummed);
}

async function read(real: string, isSummed: boolean): Promise<FoundFile> {
  let file: FileHandle;
  try {
    // A pipe must not be waited for.
    file = await open(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (!isGone(error)) throw error;
    return MISSING;
  }
  try {
    const stat = await file.stat();
    if (stat.isDirectory()) return { kind: 'there', sha256: null };
    if (!stat.isFile()) return MISSING;
    if (!isSummed || stat.size > MOST_BYTES) return { kind: 'there', sha256: null };
    const sum = createHash('sha256');
    for await (const chunk of file.createReadStream({ autoClose: false, end: MOST_BYTES })) sum.update(chunk);
    return { kind: 'there', sha256: sum.digest('hex') };
  } finally {
    await file.close();
  }
}

function isInside(path: string, roots: readonly string[]): boolean {
  return roots.some((root) => path === root || path.startsWith(root.endsWith(sep) ? root : `${root}${sep}`));
}

/** Not there, or not for us: a loop of links, a name that is too long, a folder that may not be read. */
function isGone(error: unknown): boolean {
  const codes = ['ENOENT', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG', 'EACCES', 'EPERM', 'ENXIO'];
  return codes.includes((error as NodeJS.ErrnoException).code ?? '');
}
