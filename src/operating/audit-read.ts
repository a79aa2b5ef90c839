/** Reads the audit log while others write to it: the newest entries, filtered, and the verification of the whole chain. */

import type { Zone } from '../core/dates.js';
import { Fault } from '../core/errors.js';
import { AUDIT_KINDS } from '../core/journal.js';
import { A_TIME, momentsOf } from '../core/moments.js';
import {
  type AuditLine,
  CURRENT,
  filesIn,
  type Head,
  hashOf,
  type Link,
  linesOf,
  plain,
  readHead,
  readLine,
} from './audit-files.js';

/** The options of `coterie audit`. */
export interface AuditFilter {
  kind?: string;
  who?: string;
  chat?: string;
  since?: string;
  until?: string;
  limit?: string;
}

const MOST = 10_000;
const USUALLY = 50;
const WIDEST_KIND = Math.max(...AUDIT_KINDS.map((kind) => kind.length));

export function parseFilter(
  { kind, who, chat, since, until, limit }: AuditFilter,
  zone: Zone,
  now: number,
): { matches(line: AuditLine): boolean; most: number } {
  if (kind !== undefined && !(AUDIT_KINDS as readonly string[]).includes(kind)) {
    throw refusal('kind', kind, `one of ${AUDIT_KINDS.join(', ')}`);
  }
  const from = since === undefined ? Number.NEGATIVE_INFINITY : timesIn('since', since, zone, now).from;
  const to = until === undefined ? Number.POSITIVE_INFINITY : timesIn('until', until, zone, now).to;
  const most = limit === undefined ? USUALLY : /^\d{1,9}$/.test(limit) ? Number(limit) : 0;
  if (most < 1 || most > MOST) throw refusal('limit', limit ?? '', `a whole number from 1 to ${MOST}`);
  return {
    most,
    matches(line) {
      const at = Date.parse(line.at);
      return (
        (kind === undefined || line.kind === kind) &&
        (who === undefined || line.who === who || line.word === who) &&
        (chat === undefined || line.where === chat || line.who.startsWith(`${chat}/`)) &&
        (since === undefined || at >= from) &&
        (until === undefined || at <= to)
      );
    },
  };
}

function timesIn(option: string, given: string, zone: Zone, now: number): { from: number; to: number } {
  const moments = momentsOf(given, zone, now);
  if (moments === null) throw refusal(option, given, A_TIME);
  return moments;
}

function refusal(option: string, given: string, expected: string): Fault {
  return new Fault('configuration', `--${option} ${plain(given, 60)}: expected ${expected}`);
}

/** Safe for a terminal, even if the file was manipulated. */
export function shownLine(
  { n, at, kind, who, where, what, word, details = {} }: AuditLine,
  zone: Zone,
): string {
  const time = Number.isFinite(Date.parse(at)) ? zone.time(Date.parse(at)) : 'at no time';
  const place = where === null ? '' : ` in ${where}`;
  const asked = word === null || word === who ? '' : ` (on the word of ${word})`;
  const more = Object.entries(details).map(([name, value]) => `\n    ${plain(`${name}: ${value}`, 4_000)}`);
  const line = `${n}  ${time}  ${kind.padEnd(WIDEST_KIND)}  ${who}${place}: ${what}${asked}`;
  return [plain(line, 4_000), ...more].join('');
}

/** Oldest first; `strange`: the number of manipulated lines on the way. */
export async function newestEntries(
  folder: string,
  matches: (line: AuditLine) => boolean,
  most: number,
  mostBytes = Number.POSITIVE_INFINITY,
): Promise<{ lines: AuditLine[]; strange: number }> {
  const lines: AuditLine[] = [];
  let strange = 0;
  let bytesRead = 0;
  for await (const file of filesIn(folder, 'newest first')) {
    for (const { bytes } of [...linesOf(file.bytes)].reverse()) {
      const read = readLine(bytes);
      if (!read?.intact) strange += 1;
      if (read && matches(read.line)) lines.push(read.line);
      bytesRead += bytes.length;
      if (lines.length >= most || bytesRead > mostBytes) return { lines: lines.reverse(), strange };
    }
  }
  return { lines: lines.reverse(), strange };
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
    const verdict = await verifyFrom(folder, head);
    if (verdict.broken === null) return verdict;
    // The oldest file may have been removed while it was verified.
    const now = await readHead(folder);
    if (beginningOf(now) === beginningOf(head)) return verdict;
  }
}

function beginningOf(head: Head | string): number | null {
  return typeof head === 'string' ? null : head.begins.n;
}

async function verifyFrom(folder: string, head: Head | 'gone' | 'unreadable'): Promise<Verdict> {
  let entries = 0;
  if (typeof head === 'string') {
    const { done: isEmpty } = await filesIn(folder, 'newest first').next();
    const what = `${head === 'gone' ? 'is gone' : 'cannot be read'}: it says how far the log had come`;
    const broken = head === 'gone' && isEmpty ? null : { file: 'audit.head', line: 0, what };
    return { entries, first: null, last: null, broken };
  }
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
