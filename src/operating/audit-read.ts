/** Reads the audit log while others write to it: finds the newest entries, and verifies the whole chain. */
import {
  type AuditLine,
  CURRENT,
  filesIn,
  type Head,
  hashOf,
  type Link,
  linesOf,
  readHead,
  readLine,
} from './audit-files.js';

/** Oldest first; `strange`: the number of manipulated lines on the way. `before`: only entries of lower numbers. */
export async function newestEntries(
  folder: string,
  matches: (line: AuditLine) => boolean,
  most: number,
  mostBytes = Number.POSITIVE_INFINITY,
  before = Number.POSITIVE_INFINITY,
): Promise<{ lines: AuditLine[]; strange: number }> {
  const lines: AuditLine[] = [];
  let strange = 0;
  let bytesRead = 0;
  for await (const file of filesIn(folder, 'newest first')) {
    if (file.from !== null && file.from >= before) continue;
    for (const { bytes } of [...linesOf(file.bytes)].reverse()) {
      // Hashing the lines that were read before would take a second for a full file.
      if (numberIn(bytes) >= before) continue;
      const read = readLine(bytes);
      if (!read?.intact) strange += 1;
      if (read && matches(read.line)) lines.push(read.line);
      bytesRead += bytes.length;
      if (lines.length >= most || bytesRead > mostBytes) return { lines: lines.reverse(), strange };
    }
  }
  return { lines: lines.reverse(), strange };
}

/** As a line begins; 0 for a strange one. */
function numberIn(line: Buffer): number {
  return Number(/^\{"n":(\d{1,15}),/.exec(line.toString('latin1', 0, 24))?.[1] ?? 0);
}

export interface Verdict {
  entries: number;
  /** The number of the oldest entry; null if there is none. */
  first: number | null;
  /** The last valid entry. */
  last: Link | null;
  /** The first line that fails verification; line 0: the end of the file. */
  broken: { file: string; line: number; what: string } | null;
}

export async function verifyAudit(folder: string): Promise<Verdict> {
  for (;;) {
    const head = await readHead(folder);
    const verdict = await (typeof head === 'string' ? withoutHead(folder, head) : verifyFrom(folder, head));
    if (verdict.broken === null) return verdict;
    // While it was verified, the log may have begun, or its oldest file been removed.
    if (beginningOf(await readHead(folder)) === beginningOf(head)) return verdict;
  }
}

function beginningOf(head: Head | string): number | null {
  return typeof head === 'string' ? null : head.begins.n;
}

async function withoutHead(folder: string, state: 'is gone' | 'cannot be read'): Promise<Verdict> {
  const { done: isEmpty } = await filesIn(folder, 'newest first').next();
  const what = `${state}: it says how far the log had come`;
  const broken = state === 'is gone' && isEmpty ? null : { file: 'audit.head', line: 0, what };
  return { entries: 0, first: null, last: null, broken };
}

async function verifyFrom(folder: string, head: Head): Promise<Verdict> {
  let entries = 0;
  let link = head.begins;
  const verdict = (broken: Verdict['broken']): Verdict => ({
    entries,
    first: entries === 0 ? null : head.begins.n + 1,
    last: entries === 0 ? null : link,
    broken,
  });
  for await (const { name, from, bytes } of filesIn(folder, 'oldest first')) {
    // A process ended before it could remove this file.
    if (from !== null && from <= head.begins.n) continue;
    let number = 0;
    /** The first line that breaks the chain; allowed if a later `torn` line declares it the remains of a crash. */
    let left: { line: number; what: string; start: number } | null = null;
    let isUnended = false;
    for (const { bytes: line, start, isWhole } of linesOf(bytes)) {
      number += 1;
      isUnended = !isWhole;
      const read = isWhole ? readLine(line) : null;
      const wrong = wrongWith(read, link);
      const isExplained = left === null || isTorn(read?.line, bytes.subarray(left.start, start));
      if (wrong !== null || read === null || !isExplained) {
        left ??= { line: number, what: wrong ?? '', start };
        continue;
      }
      left = null;
      const { n, hash, kind, what } = read.line;
      if (n === head.n && hash !== head.hash) {
        const rewritten = `entry ${n} is not the one that was written: it, or what is before it, was written anew`;
        return verdict({ file: name, line: number, what: rewritten });
      }
      if (kind === 'broken') return verdict({ file: name, line: number, what });
      link = { n, hash };
      entries += 1;
    }
    // An incomplete last line is being written, or a crash left it: the next write declares it.
    const isUnfinished = left?.line === number && isUnended && link.n >= head.n;
    if (left !== null && !isUnfinished) return verdict({ file: name, line: left.line, what: left.what });
  }
  if (link.n >= head.n) return verdict(null);
  return verdict({ file: CURRENT, line: 0, what: `${numbers(link.n + 1, head.n)} missing at the end` });
}

function isTorn(line: AuditLine | undefined, left: Buffer): boolean {
  return line?.kind === 'torn' && line.torn?.bytes === left.length && line.torn.hash === hashOf(left);
}

/** null if the line continues the chain. */
function wrongWith(read: ReturnType<typeof readLine>, link: Link): string | null {
  if (read === null) return 'this is no entry';
  const { line, intact } = read;
  if (!intact) return `entry ${line.n} is not as it was written`;
  if (line.n > link.n + 1) return `${numbers(link.n + 1, line.n - 1)} missing before this`;
  if (line.n <= link.n) return `entry ${line.n} stands here again, or was moved here`;
  if (line.before !== link.hash) return `entry ${line.n} goes on from another line than the one before it`;
  return null;
}

function numbers(from: number, to: number): string {
  return from === to ? `entry ${from} is` : `the entries ${from} to ${to} are`;
}
