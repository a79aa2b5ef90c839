/** Audit logs in a folder of their own, and what somebody does to their files. */
import { appendFile, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { systemClock } from '../../src/core/clock.js';
import type { Audit, AuditEntry } from '../../src/core/journal.js';
import { createAudit } from '../../src/operating/audit.js';
import { type AuditLine, lineOf, readLine } from '../../src/operating/audit-files.js';
import { newestEntries } from '../../src/operating/audit-read.js';
import { quietLog } from '../harness/quiet.js';

export function auditIn(folder: string, parts: Partial<Parameters<typeof createAudit>[0]> = {}): Audit {
  const plain = { redact: (text: string) => text, clock: systemClock, log: quietLog };
  return createAudit({ folder, keepBytes: 1e9, ...plain, ...parts });
}

export function entry(what: string, more: Partial<AuditEntry> = {}): AuditEntry {
  return { kind: 'command', who: 'test_1', where: 'test_1', what, word: 'test_1', ...more };
}

export async function enter(audit: Audit, ...what: string[]): Promise<void> {
  for (const each of what) await audit.record(entry(each));
}

export async function entriesIn(folder: string): Promise<AuditLine[]> {
  return (await newestEntries(folder, () => true, 100_000)).lines;
}

export async function saidIn(folder: string): Promise<string[]> {
  return (await entriesIn(folder)).map(({ what }) => what);
}

export async function linesIn(folder: string, name = 'audit.jsonl'): Promise<string[]> {
  return (await readFile(join(folder, name), 'utf8')).trimEnd().split('\n');
}

/** As somebody with an editor would leave the file. */
export async function rewrite(
  folder: string,
  change: (lines: string[]) => string[],
  name = 'audit.jsonl',
): Promise<void> {
  const changed = change(await linesIn(folder, name));
  await writeFile(join(folder, name), changed.map((line) => `${line}\n`).join(''));
}

/** What somebody writes who knows how the chain is made: every line from one on, after a change, with new hashes. */
export function rechained(lines: string[], from: number, change: (what: string) => string): string[] {
  const kept = lines.slice(0, from);
  let link = linkOf(kept.at(-1));
  const made = lines.slice(from).map((line) => {
    const read = readLine(Buffer.from(line));
    if (!read) throw new Error('the test needs whole lines');
    const next = lineOf({ ...read.line, what: change(read.line.what) }, link);
    link = next.link;
    return next.text.trimEnd();
  });
  return [...kept, ...made];
}

function linkOf(line: string | undefined): { n: number; hash: string } {
  const read = line === undefined ? null : readLine(Buffer.from(line));
  return read ? read.line : { n: 0, hash: '0'.repeat(64) };
}

export function leave(folder: string, bytes: string | Buffer): Promise<void> {
  return appendFile(join(folder, 'audit.jsonl'), bytes);
}

export async function olderIn(folder: string): Promise<string[]> {
  return (await readdir(folder)).filter((name) => /^audit\.\d+\.jsonl$/.test(name)).sort();
}
