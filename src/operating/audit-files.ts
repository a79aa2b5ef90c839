/**
 * The files of the audit log in `data_dir`: `audit.jsonl`, older ones by the number of their first entry, and
 * `audit.head` beside them, which says how far the log had come, so that a tail that was cut off is noticed.
 */
import { constants } from 'node:fs';
import { type FileHandle, open, readdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { BEGINNING, type Link } from './audit-line.js';
import { giveToOwner } from './modes.js';

export interface Head extends Link {
  /** How long `audit.jsonl` was then, and the number of the first entry in it. */
  bytes: number;
  from: number;
  /** What the oldest file that is kept goes on from. */
  begins: Link;
}

export const NEW_HEAD: Head = { ...BEGINNING, bytes: 0, from: 1, begins: BEGINNING };

const HEAD = 'audit.head';
export const CURRENT = 'audit.jsonl';

export function olderName(from: number): string {
  return `audit.${from}.jsonl`;
}

/** The older files, oldest first. */
export async function olderFiles(folder: string): Promise<{ name: string; from: number }[]> {
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  const found = names.flatMap((name) => {
    const [, from] = /^audit\.([1-9]\d{0,14})\.jsonl$/.exec(name) ?? [];
    return from === undefined ? [] : [{ name, from: Number(from) }];
  });
  return found.sort((a, b) => a.from - b.from);
}

/** Throws for what is no file: a pipe would keep whoever opens it waiting, and a device has no end. */
export async function openFile(path: string, flags: number = constants.O_RDONLY): Promise<FileHandle> {
  const file = await open(path, flags | constants.O_NONBLOCK, 0o600);
  if (!(await file.stat()).isFile()) {
    await file.close();
    throw new Error(`${path} is no file; move it elsewhere`);
  }
  if (flags & constants.O_CREAT) giveToOwner(path);
  return file;
}

/** null where nothing is. */
export async function openIfThere(path: string): Promise<FileHandle | null> {
  try {
    return await openFile(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

/** null where there is none; 'unreadable' where it is none of ours. */
export async function readHead(folder: string): Promise<Head | null | 'unreadable'> {
  const file = await openIfThere(join(folder, HEAD));
  if (file === null) return null;
  const text = await file.readFile('utf8').finally(() => file.close());
  try {
    const head = JSON.parse(text) as Head;
    const numbers = [head.n, head.bytes, head.from, head.begins.n];
    const hashes = [head.hash, head.begins.hash];
    const isOurs =
      numbers.every((value) => Number.isSafeInteger(value) && value >= 0) &&
      hashes.every((hash) => typeof hash === 'string');
    return isOurs ? head : 'unreadable';
  } catch {
    return 'unreadable';
  }
}

/** On the disk, whole, when it resolves. */
export async function writeHead(folder: string, head: Head): Promise<void> {
  const beside = join(folder, `${HEAD}.new`);
  const file = await openFile(beside, constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC);
  try {
    await file.writeFile(`${JSON.stringify(head)}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(beside, join(folder, HEAD));
}

/** So that a file that was made or renamed is still there after a power cut. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
