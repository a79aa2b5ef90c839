/**
 * Writes the audit log: `audit.jsonl` in `data_dir`, append-only, each line chained to the one before. A process holds
 * the log's lock for one write, which takes all waiting entries in order. The chain continues from `audit.head`, never
 * from a file, so that `coterie audit --verify` reveals any change to a file.
 */

import { constants } from 'node:fs';
import { rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../core/clock.js';
import { describe, Fault } from '../core/errors.js';
import { type Audit, type AuditEntry, GATEWAY } from '../core/journal.js';
import type { Log } from '../core/log.js';
import { syncFolder } from '../core/write-whole.js';
import {
  BEGINNING,
  CURRENT,
  type Draft,
  filesIn,
  type Head,
  hashOf,
  LINE_END,
  type Link,
  lineOf,
  linesOf,
  NEW_HEAD,
  olderFiles,
  openFile,
  readHead,
  readIfThere,
  readLine,
  writeHead,
} from './audit-files.js';
import { type DataLock, takeLock } from './lock.js';

interface AuditLogOptions {
  folder: string;
  /** Rotation: `audit.jsonl` becomes an older file before it would exceed this. */
  fileBytes?: number;
  /** The oldest files are removed when the total would exceed this. */
  keepBytes: number;
  redact(text: string): string;
  clock: Clock;
  log: Log;
}

interface WaitingEntry {
  draft: Draft;
  /** The recorded action happens even if this entry cannot be written. */
  goesOn: boolean;
  resolve(): void;
  reject(error: Fault): void;
}

const FILE_BYTES = 10_000_000;
/** Entries per write: a crash leaves little unfinished. */
const MOST_AT_ONCE = 200;
/** Attempts to get the lock, about ten seconds in all. Attempts are counted because a clock may jump. */
const TRIES = 2_000;
const SAY_EVERY_MS = 60_000;

export function createAudit(options: AuditLogOptions): Audit {
  const { folder, redact, clock, log } = options;
  const waiting: WaitingEntry[] = [];
  let isWriting = false;
  /** Entries lost since the last successful write. */
  let missed: { count: number; since: string } | null = null;
  let saidAt = Number.NEGATIVE_INFINITY;

  function append(entry: AuditEntry, goesOn: boolean): Promise<void> {
    const details =
      entry.details && Object.entries(entry.details).map(([name, value]) => [name, redact(value)]);
    const redacted = { what: redact(entry.what), details: details && Object.fromEntries(details) };
    return new Promise((resolve, reject) => {
      waiting.push({ draft: { ...entry, at: time(), ...redacted }, goesOn, resolve, reject });
      if (!isWriting) void write();
    });
  }

  async function write(): Promise<void> {
    isWriting = true;
    while (waiting.length > 0) {
      // Entries of the same tick share a write.
      await null;
      const batch = waiting.splice(0, MOST_AT_ONCE);
      const drafts = batch.map(({ draft }) => draft);
      if (missed !== null) drafts.unshift(ownEntry('audit', gap(missed), time()));
      try {
        const lock = await waitForLock(join(folder, 'audit.lock'), clock);
        try {
          await appendLines(options, drafts, time());
        } finally {
          lock.release();
        }
        missed = null;
        for (const { resolve } of batch) resolve();
      } catch (error) {
        fail(batch, error);
      }
    }
    isWriting = false;
  }

  function fail(batch: WaitingEntry[], error: unknown): void {
    const file = join(folder, CURRENT);
    const what = `The audit log ${file} cannot be written; make room, or let this user write there`;
    const fault = new Fault('audit_unavailable', what, error);
    for (const { draft, goesOn, resolve, reject } of batch) {
      if (!goesOn) {
        reject(fault);
        continue;
      }
      missed = { count: (missed?.count ?? 0) + 1, since: missed?.since ?? draft.at };
      resolve();
    }
    const now = clock.now();
    if (missed === null || Math.abs(now - saidAt) < SAY_EVERY_MS) return;
    saidAt = now;
    log.error({ why: describe(fault), missing: missed.count }, 'audit log not written; work goes on');
  }

  function time(): string {
    return new Date(clock.now()).toISOString();
  }

  return { record: (entry) => append(entry, false), note: (entry) => append(entry, true) };
}

async function waitForLock(file: string, clock: Clock): Promise<DataLock> {
  for (let tries = 0; tries < TRIES; tries++) {
    const lock = await takeLock(file);
    if (lock) return lock;
    await clock.sleep(1 + (tries % 9));
  }
  throw new Error('another process holds its lock and does not let go');
}

function gap({ count, since }: { count: number; since: string }): string {
  return `${count === 1 ? 'one thing was' : `${count} things were`} done since ${since} that could not be entered`;
}

/** When it resolves, all entries are on disk; if it rejects, none is in the log. */
async function appendLines(options: AuditLogOptions, drafts: Draft[], at: string): Promise<void> {
  const { folder, fileBytes = FILE_BYTES } = options;
  let { head, notes: added } = await findEnd(folder, at);
  // An estimate: a line is a little longer than its draft.
  const size = Buffer.byteLength(JSON.stringify(drafts)) + drafts.length * 250;
  const isFull = head.bytes > 0 && head.bytes + size > fileBytes;
  // A note about a file belongs in that file, so it is not rotated first.
  if (isFull && added.length === 0 && (await rotate(folder, head))) {
    head = { ...head, bytes: 0, from: head.n + 1 };
    await writeHead(folder, head);
    head = await removeOldest(options, head, (what) => added.push(ownEntry('audit', what, at)));
  }
  let lines = '';
  let link: Link = head;
  for (const draft of [...added, ...drafts]) {
    const next = lineOf(draft, link);
    lines += next.text;
    link = next.link;
  }
  const flags = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT;
  const file = await openFile(join(folder, CURRENT), flags);
  try {
    const { size: before } = await file.stat();
    const { buffer: last, bytesRead } = await file.read(Buffer.alloc(1), 0, 1, Math.max(0, before - 1));
    const text = bytesRead === 0 || last[0] === LINE_END ? lines : `\n${lines}`;
    try {
      await file.appendFile(text);
      await file.datasync();
      if (before === 0) await syncFolder(folder);
      await writeHead(folder, { ...head, ...link, bytes: before + Buffer.byteLength(text) });
    } catch (error) {
      // If that fails, too, the next write finds the rest behind the head.
      await file.truncate(before).catch(() => {});
      throw error;
    }
  } finally {
    await file.close();
  }
}

interface AuditEnd {
  head: Head;
  /** Entries about the log itself, written first. */
  notes: Draft[];
}

/** The head, advanced over complete lines that a process wrote before it crashed. */
async function findEnd(folder: string, at: string): Promise<AuditEnd> {
  const head = await readHead(folder);
  if (typeof head === 'string') return withoutHead(folder, head, at);
  const tail = await readIfThere(join(folder, CURRENT), head.bytes);
  // The file was renamed before the head was updated, or somebody removed it.
  if (tail === null) {
    return { head: head.bytes > 0 ? { ...head, bytes: 0, from: head.n + 1 } : head, notes: [] };
  }
  const { bytes } = tail;
  let { n, hash } = head;
  let good = 0;
  for (const { bytes: line, end, isWhole } of linesOf(bytes)) {
    const read = isWhole ? readLine(line) : null;
    if (!read?.intact || read.line.n !== n + 1 || read.line.before !== hash) break;
    ({ n, hash } = read.line);
    good = end;
  }
  const reached = { ...head, n, hash, bytes: head.bytes + good };
  if (good === bytes.length) return { head: reached, notes: [] };
  const left = Buffer.concat([bytes.subarray(good), Buffer.from(bytes.at(-1) === LINE_END ? '' : '\n')]);
  const what = `the ${left.length} bytes before this line were being written when the process or the machine ended`;
  const torn = { bytes: left.length, hash: hashOf(left) };
  return { head: reached, notes: [{ ...ownEntry('torn', what, at), torn }] };
}

/** The head is written before the first entry, so unless the log is empty, somebody removed it. */
async function withoutHead(folder: string, state: string, at: string): Promise<AuditEnd> {
  const head = { ...NEW_HEAD };
  let begins: Link | null = null;
  let from: number | null = null;
  let isEmpty = true;
  for await (const { name, bytes } of filesIn(folder, 'oldest first')) {
    isEmpty = false;
    if (name === CURRENT) head.bytes = bytes.length;
    for (const { bytes: line } of linesOf(bytes)) {
      const read = readLine(line);
      if (read === null) continue;
      begins ??= linkBefore(read.line);
      if (name === CURRENT) from ??= read.line.n;
      if (read.intact) Object.assign(head, { n: read.line.n, hash: read.line.hash });
    }
  }
  if (isEmpty && state === 'is gone') {
    await writeHead(folder, NEW_HEAD);
    return { head, notes: [] };
  }
  const what = `audit.head ${state}: whether entries are missing before this is not known`;
  const known = { ...head, from: from ?? head.n + 1, begins: begins ?? BEGINNING };
  return { head: known, notes: [ownEntry('broken', what, at)] };
}

/** False if the older file's name is taken: nothing is ever overwritten. */
async function rotate(folder: string, { from }: Head): Promise<boolean> {
  const older = join(folder, `audit.${from}.jsonl`);
  if (await stat(older).catch(() => null)) return false;
  await rename(join(folder, CURRENT), older);
  await syncFolder(folder);
  return true;
}

/** The head is updated before a file is removed, so that a crash in between does not break the chain. */
async function removeOldest(
  { folder, fileBytes = FILE_BYTES, keepBytes }: AuditLogOptions,
  given: Head,
  tell: (what: string) => void,
): Promise<Head> {
  const files = await olderFiles(folder);
  const sizes = await Promise.all(files.map(async ({ name }) => (await stat(join(folder, name))).size));
  let total = sizes.reduce((sum, bytes) => sum + bytes, fileBytes);
  let head = given;
  for (const [i, { name, from }] of files.entries()) {
    if (total <= keepBytes) break;
    const next = files[i + 1];
    const begins = next ? await beginningOf(join(folder, next.name)) : { n: head.n, hash: head.hash };
    if (begins === null) break;
    head = { ...head, begins };
    await writeHead(folder, head);
    await rm(join(folder, name));
    total -= sizes[i] ?? 0;
    tell(`the oldest file went, with the entries ${from} to ${begins.n} (retention.audit_bytes)`);
  }
  return head;
}

/** The end of the chain before a file. */
async function beginningOf(path: string): Promise<Link | null> {
  const file = await readIfThere(path);
  for (const { bytes } of linesOf(file?.bytes ?? Buffer.alloc(0))) {
    const read = readLine(bytes);
    if (read) return linkBefore(read.line);
  }
  return null;
}

function linkBefore({ n, before }: { n: number; before: string }): Link {
  return { n: n - 1, hash: before };
}

function ownEntry(kind: AuditEntry['kind'], what: string, at: string): Draft {
  return { at, kind, who: GATEWAY, where: null, what, word: null };
}
