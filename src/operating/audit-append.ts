/**
 * Adds to the audit log, for whoever holds its lock. It goes on from what the head says, never from what a file says:
 * where the two differ the log keeps that for good, and `--verify` finds it. Only what stands behind the head and
 * continues it is taken: a process ended before it could move the head.
 */
import { constants } from 'node:fs';
import { type FileHandle, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type AuditEntry, GATEWAY } from '../core/journal.js';
import {
  CURRENT,
  type Head,
  NEW_HEAD,
  olderFiles,
  olderName,
  openFile,
  openIfThere,
  readHead,
  syncFolder,
  writeHead,
} from './audit-files.js';
import { BEGINNING, type Draft, hashOf, type Link, lineOf, readLine } from './audit-line.js';
import { linesBackwards, linesFrom } from './audit-lines.js';

export interface Place {
  folder: string;
  /** `audit.jsonl` becomes an older file before it would grow beyond this. */
  fileBytes: number;
  /** The oldest files go when all together would take more. */
  keepBytes: number;
}

/** More behind the head than this was not left by a process that ended. */
const MOST_BEHIND = 16_000_000;

/** All of them are on the disk when it resolves; where it rejects, none is in the log. */
export async function append(place: Place, drafts: Draft[], at: string): Promise<void> {
  const { folder } = place;
  const found = await takeUp(folder);
  const isFull = found.head.bytes > 0 && found.head.bytes + bytesOf(drafts) > place.fileBytes;
  // What is to be said of a file stands in that file.
  const { head, added, unended } = isFull && found.isExact ? await rotate(place, found) : found;
  let text = unended ? '\n' : '';
  let link: Link = head;
  for (const draft of [...added.map((each) => ({ at, ...each })), ...drafts]) {
    const next = lineOf(draft, link);
    text += next.text;
    link = next.link;
  }
  const path = join(folder, CURRENT);
  const file = await openFile(path, constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT);
  try {
    const { size } = await file.stat();
    try {
      await file.appendFile(text);
      await file.datasync();
      if (size === 0) await syncFolder(folder);
      await writeHead(folder, { ...head, ...link, bytes: size + Buffer.byteLength(text) });
    } catch (error) {
      // Where even that fails, the next write finds it behind the head.
      await file.truncate(size).catch(() => {});
      throw error;
    }
  } finally {
    await file.close();
  }
}

/** Lines are a little longer than what they are made of. */
function bytesOf(drafts: Draft[]): number {
  return Buffer.byteLength(JSON.stringify(drafts)) + drafts.length * 250;
}

interface Found {
  head: Head;
  /** What is to be said of the state in which it was found. */
  added: Omit<Draft, 'at'>[];
  /** What stands there does not end with a line end. */
  unended: boolean;
  /** The head on the disk is what it is now. */
  isExact: boolean;
}

async function takeUp(folder: string): Promise<Found> {
  const read = await readHead(folder);
  if (read === null || read === 'unreadable') return withoutHead(folder, read);
  const file = await openIfThere(join(folder, CURRENT));
  if (file === null) {
    if (read.bytes === 0) return asExpected(read);
    // It was renamed, and the process ended before it could say so.
    if (await isThere(join(folder, olderName(read.from))))
      return asExpected({ ...read, bytes: 0, from: read.n + 1 });
    const gone = `${CURRENT} is gone, with the entries ${read.from} to ${read.n}`;
    return changed({ ...read, bytes: 0, from: read.n + 1 }, gone, false);
  }
  try {
    return await behind(file, read);
  } finally {
    await file.close();
  }
}

/** Compares the file with the head, and takes what stands behind it and goes on from it. */
async function behind(file: FileHandle, head: Head): Promise<Found> {
  const { size } = await file.stat();
  const unended = await isUnended(file, size);
  if (size < head.bytes) {
    const cut = `${CURRENT} was ${head.bytes} bytes long and is ${size}: entries up to ${head.n} are missing`;
    return changed(head, cut, unended);
  }
  if (size === head.bytes) {
    if (size === 0 || (await lastHash(file)) === head.hash) return asExpected(head);
    return changed(head, `${CURRENT} does not end with entry ${head.n} as it was written`, unended);
  }
  if (size - head.bytes > MOST_BEHIND) {
    return changed(head, `${CURRENT} holds ${size - head.bytes} bytes that were not written`, unended);
  }
  let link: Link = head;
  let good = head.bytes;
  for await (const { bytes, length, ended } of linesFrom(file, head.bytes)) {
    const read = ended ? readLine(bytes) : null;
    if (!read?.intact || read.line.n !== link.n + 1 || read.line.before !== link.hash) break;
    link = read.line;
    good += length;
  }
  const reached = { ...head, n: link.n, hash: link.hash, bytes: good };
  if (good === size) return { head: reached, added: [], unended, isExact: false };
  const { buffer } = await file.read(Buffer.alloc(size - good), 0, size - good, good);
  const left = unended ? Buffer.concat([buffer, Buffer.from('\n')]) : buffer;
  const torn = { bytes: left.length, hash: hashOf(left) };
  const what = `the ${left.length} bytes before this line were being written when the process or the machine ended`;
  return { head: reached, added: [{ ...ofItself('torn', what), torn }], unended, isExact: false };
}

/** It is written before the first entry, so somebody has taken it away, unless there is nothing yet. */
async function withoutHead(folder: string, read: null | 'unreadable'): Promise<Found> {
  const names = [...(await olderFiles(folder)).map(({ name }) => name), CURRENT];
  let begins: Link | null = null;
  let reached: Link = BEGINNING;
  let current = { bytes: 0, from: 0, unended: false };
  let isAnyThere = false;
  for (const name of names) {
    const file = await openIfThere(join(folder, name));
    if (file === null) continue;
    isAnyThere = true;
    try {
      const first = await firstLink(file);
      begins ??= first;
      reached = (await lastLink(file)) ?? reached;
      if (name !== CURRENT) continue;
      const { size } = await file.stat();
      current = { bytes: size, from: (first ?? reached).n + 1, unended: await isUnended(file, size) };
    } finally {
      await file.close();
    }
  }
  if (!isAnyThere && read === null) {
    await writeHead(folder, NEW_HEAD);
    return asExpected(NEW_HEAD);
  }
  const { bytes, from, unended } = current;
  const head: Head = {
    n: reached.n,
    hash: reached.hash,
    bytes,
    from: from || reached.n + 1,
    begins: begins ?? BEGINNING,
  };
  const state = read === null ? 'is gone' : 'cannot be read';
  return changed(head, `audit.head ${state}: whether entries are missing before this is not known`, unended);
}

async function rotate(place: Place, found: Found): Promise<Found> {
  const { folder } = place;
  const { head } = found;
  const older = join(folder, olderName(head.from));
  // Nothing of it is ever written over.
  if (await isThere(older)) return found;
  await rename(join(folder, CURRENT), older);
  const next = { ...head, bytes: 0, from: head.n + 1 };
  await syncFolder(folder);
  await writeHead(folder, next);
  return trim(place, next);
}

/** The head knows of it first: what is no longer expected may go. */
async function trim({ folder, fileBytes, keepBytes }: Place, given: Head): Promise<Found> {
  const files = await Promise.all(
    (await olderFiles(folder)).map(async (file) => ({
      ...file,
      bytes: (await stat(join(folder, file.name))).size,
    })),
  );
  let total = files.reduce((sum, { bytes }) => sum + bytes, fileBytes);
  let head = given;
  const added: Found['added'] = [];
  for (const [i, { name, from, bytes }] of files.entries()) {
    if (total <= keepBytes) break;
    const next = files[i + 1];
    const begins = next ? await beginningOf(join(folder, next.name)) : head;
    if (begins === null) break;
    head = { ...head, begins: { n: begins.n, hash: begins.hash } };
    await writeHead(folder, head);
    await rm(join(folder, name));
    total -= bytes;
    const what = `the oldest file went, with the entries ${from} to ${begins.n} (retention.audit_bytes)`;
    added.push(ofItself('audit', what));
  }
  return { head, added, unended: false, isExact: true };
}

async function beginningOf(path: string): Promise<Link | null> {
  const file = await openFile(path);
  try {
    return await firstLink(file);
  } finally {
    await file.close();
  }
}

/** What its first line goes on from. */
async function firstLink(file: FileHandle): Promise<Link | null> {
  for await (const { bytes } of linesFrom(file)) {
    const read = readLine(bytes);
    if (read) return { n: read.line.n - 1, hash: read.line.before };
  }
  return null;
}

async function lastLink(file: FileHandle): Promise<Link | null> {
  for await (const bytes of linesBackwards(file)) {
    const read = readLine(bytes);
    if (read?.intact) return read.line;
  }
  return null;
}

async function lastHash(file: FileHandle): Promise<string | null> {
  for await (const bytes of linesBackwards(file)) {
    const read = readLine(bytes);
    return read?.intact ? read.line.hash : null;
  }
  return null;
}

async function isUnended(file: FileHandle, size: number): Promise<boolean> {
  if (size === 0) return false;
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 1);
  return buffer[0] !== 0x0a;
}

function asExpected(head: Head): Found {
  return { head, added: [], unended: false, isExact: true };
}

/** By somebody else: what they did is told from here on. */
function changed(head: Head, what: string, unended: boolean): Found {
  return { head, added: [ofItself('broken', what)], unended, isExact: false };
}

export function ofItself(kind: AuditEntry['kind'], what: string): AuditEntry {
  return { kind, who: GATEWAY, where: null, what, word: null };
}

function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return false;
      throw error;
    },
  );
}
