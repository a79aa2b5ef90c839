/**
 * Goes along the chain of the audit log, from the oldest file that is kept to the newest entry, while others write:
 * where a line was changed, taken out, put in or moved, and whether the end is the one that was written.
 */
import { createHash, type Hash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { CURRENT, type Head, olderFiles, openIfThere, readHead } from './audit-files.js';
import { type AuditLine, type Link, readLine } from './audit-line.js';
import { linesFrom, type RawLine } from './audit-lines.js';

export interface Verdict {
  entries: number;
  /** The number of the oldest entry; null: there is none. */
  first: number | null;
  /** How far it holds. */
  last: Link | null;
  broken: Break | null;
}

export interface Break {
  file: string;
  /** From 1; 0: not one line of it. */
  line: number;
  what: string;
}

export async function verifyAudit(folder: string): Promise<Verdict> {
  for (;;) {
    const head = await readHead(folder);
    const verdict = await verifyFrom(folder, head);
    // The oldest file may have gone meanwhile.
    const now = verdict.broken === null ? head : await readHead(folder);
    if (beginningOf(now) === beginningOf(head)) return verdict;
  }
}

function beginningOf(head: Awaited<ReturnType<typeof readHead>>): number | null {
  return head === null || head === 'unreadable' ? null : head.begins.n;
}

async function verifyFrom(folder: string, head: Awaited<ReturnType<typeof readHead>>): Promise<Verdict> {
  // Opened before the others are listed: one that is renamed meanwhile is among these, too.
  const current = await openIfThere(join(folder, CURRENT));
  try {
    const older = await olderFiles(folder);
    if (head === null || head === 'unreadable') {
      const isEmpty = head === null && current === null && older.length === 0;
      const what = `${head === null ? 'is gone' : 'cannot be read'}: it says how far the log had come`;
      const broken = isEmpty ? null : { file: 'audit.head', line: 0, what };
      return { entries: 0, first: null, last: null, broken };
    }
    const walk: Walk = { head, link: head.begins, entries: 0 };
    const seen = new Set<number>();
    for (const { name, from } of older) {
      // It was to go, and the process ended before.
      if (from <= head.begins.n) continue;
      const file = await openIfThere(join(folder, name));
      if (file === null) continue;
      try {
        seen.add((await file.stat()).ino);
        const broken = await along(file, name, walk);
        if (broken !== null) return verdictOf(walk, broken);
      } finally {
        await file.close();
      }
    }
    if (current !== null && !seen.has((await current.stat()).ino)) {
      const broken = await along(current, CURRENT, walk);
      if (broken !== null) return verdictOf(walk, broken);
    }
    if (walk.link.n >= head.n) return verdictOf(walk, null);
    const missing = numbers(walk.link.n + 1, head.n);
    return verdictOf(walk, { file: CURRENT, line: 0, what: `${missing} missing at the end` });
  } finally {
    await current?.close();
  }
}

interface Walk {
  head: Head;
  link: Link;
  entries: number;
}

function verdictOf({ head, link, entries }: Walk, broken: Break | null): Verdict {
  return {
    entries,
    first: entries === 0 ? null : head.begins.n + 1,
    last: entries === 0 ? null : link,
    broken,
  };
}

/** What does not go on from the line before, from its first line on: rubbish if a `torn` line behind it says so. */
interface Left {
  line: number;
  what: string;
  bytes: number;
  hash: Hash;
  isUnended: boolean;
}

async function along(file: FileHandle, name: string, walk: Walk): Promise<Break | null> {
  let number = 0;
  let left: Left | null = null;
  for await (const raw of linesFrom(file)) {
    number += 1;
    const read = raw.ended ? readLine(raw.bytes) : null;
    if (left === null) {
      const wrong = wrongWith(read, walk.link);
      if (wrong === null && read !== null) {
        const what = stepTo(read.line, walk);
        if (what !== null) return { file: name, line: number, what };
        continue;
      }
      left = { line: number, what: wrong ?? '', bytes: 0, hash: createHash('sha256'), isUnended: false };
    } else if (read !== null && wrongWith(read, walk.link) === null && explains(read.line, left)) {
      const what = stepTo(read.line, walk);
      if (what !== null) return { file: name, line: number, what };
      left = null;
      continue;
    }
    add(left, raw);
  }
  if (left === null) return null;
  // Being written just now, or left by a crash: the next write says which.
  const isUnfinished = left.line === number && left.isUnended && walk.link.n >= walk.head.n;
  return isUnfinished ? null : { file: name, line: left.line, what: left.what };
}

function add(left: Left, { bytes, length, ended }: RawLine): void {
  left.bytes += length;
  left.hash.update(bytes);
  if (ended) left.hash.update('\n');
  else left.isUnended = true;
}

function explains({ kind, torn }: AuditLine, left: Left): boolean {
  return kind === 'torn' && torn?.bytes === left.bytes && torn.hash === left.hash.copy().digest('hex');
}

/** null where it goes on from the line before. */
function wrongWith(read: ReturnType<typeof readLine>, link: Link): string | null {
  if (read === null) return 'this is no entry';
  const { line, intact } = read;
  if (!intact) return `entry ${line.n} is not as it was written`;
  if (line.n > link.n + 1) return `${numbers(link.n + 1, line.n - 1)} missing before this`;
  if (line.n <= link.n) return `entry ${line.n} stands here again, or was moved here`;
  if (line.before !== link.hash) return `entry ${line.n} goes on from another line than the one before it`;
  return null;
}

/** Why it still may not stand there. */
function stepTo({ kind, n, hash, what }: AuditLine, walk: Walk): string | null {
  if (n === walk.head.n && hash !== walk.head.hash) {
    return `entry ${n} is not the one that was written: it, or what is before it, was written anew`;
  }
  if (kind === 'broken') return what;
  walk.link = { n, hash };
  walk.entries += 1;
  return null;
}

function numbers(from: number, to: number): string {
  return from === to ? `entry ${from} is` : `the entries ${from} to ${to} are`;
}
