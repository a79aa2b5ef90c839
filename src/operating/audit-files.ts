/**
 * The files of the audit log in `data_dir`: `audit.jsonl`, older files named by the number of their first entry, and
 * `audit.head`, the last known end of the log, which reveals a cut tail. A line is JSON with the hash of the line
 * before; its last field is the SHA-256 of everything before that field.
 */
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open, readdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import { cutAt } from '../core/cut.js';
import { nullIfMissing } from '../core/file-access.js';
import { AUDIT_KINDS } from '../core/journal.js';
import { giveToOwner } from './lock.js';

/** The fields of `AuditEntry`, and those of the chain. */
const auditLine = z.object({
  /** 1, 2, 3, … across all files. */
  n: z.int(),
  /** ISO 8601. */
  at: z.string(),
  kind: z.enum(AUDIT_KINDS),
  who: z.string(),
  where: z.string().nullable(),
  what: z.string(),
  word: z.string().nullable(),
  details: z.record(z.string(), z.string()).optional(),
  /** Of kind `torn`: the remains of a crash before this line. */
  torn: z.object({ bytes: z.number(), hash: z.string() }).optional(),
  /** The hash of the line before. */
  before: z.string(),
  hash: z.string(),
});

export type AuditLine = z.infer<typeof auditLine>;

/** A line yet to be written. */
export type Draft = Omit<AuditLine, 'n' | 'before' | 'hash'>;

/** The end of the chain. */
const link = z.object({ n: z.int().min(0), hash: z.string() });
export type Link = z.infer<typeof link>;

const auditHead = link.extend({
  /** The length of `audit.jsonl`, and the number of its first entry. */
  bytes: z.int().min(0),
  from: z.int().min(0),
  /** The end of the chain before the oldest remaining file. */
  begins: link,
});
export type Head = z.infer<typeof auditHead>;

export const BEGINNING: Link = { n: 0, hash: '0'.repeat(64) };
export const NEW_HEAD: Head = { ...BEGINNING, bytes: 0, from: 1, begins: BEGINNING };
export const CURRENT = 'audit.jsonl';
const HEAD = 'audit.head';

const WHO_CHARS = 400;
const WHAT_CHARS = 1_000;
const DETAIL_CHARS = 20_000;
export const LINE_END = 0x0a;

export function lineOf(draft: Draft, { n, hash: before }: Link): { text: string; link: Link } {
  const { at, kind, who, where, what, word, details, torn } = draft;
  const shown = Object.entries(details ?? {}).map(([name, value]) => [
    plain(name, WHO_CHARS),
    plain(value, DETAIL_CHARS),
  ]);
  const fields = JSON.stringify({
    n: n + 1,
    at,
    kind,
    who: plain(who, WHO_CHARS),
    where: where && plain(where, WHO_CHARS),
    what: plain(what, WHAT_CHARS),
    word: word && plain(word, WHO_CHARS),
    details: details && Object.fromEntries(shown),
    torn,
    before,
  });
  const hash = hashOf(fields);
  return { text: `${fields.slice(0, -1)},"hash":"${hash}"}\n`, link: { n: n + 1, hash } };
}

/** null if it is not an entry. `intact`: unchanged since it was written. */
export function readLine(bytes: Buffer): { line: AuditLine; intact: boolean } | null {
  const text = bytes.toString('utf8');
  const [, fields, hash] = /^(\{.*),"hash":"([0-9a-f]{64})"\}$/s.exec(text) ?? [];
  if (fields === undefined) return null;
  try {
    const line = auditLine.parse(JSON.parse(text));
    // Invalid UTF-8 decodes to the same text as other bytes, so bytes are compared.
    return { line, intact: hashOf(`${fields}}`) === hash && Buffer.from(text).equals(bytes) };
  } catch {
    return null;
  }
}

/** One line without control, invisible and bidirectional characters; the joiners of emoji and scripts stay. */
export function plain(text: string, most: number): string {
  const safe = text.replace(/(?:(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029])+/gu, ' ').trim();
  return safe.length <= most ? safe : `${cutAt(safe, most)} … (${safe.length} characters)`;
}

export function hashOf(data: string | Buffer): string {
  return createHash('sha256').update(data).digest('hex');
}

/** Lines without their newline; `end`: the offset behind it. `isWhole` is false for a last line without one. */
export function* linesOf(file: Buffer) {
  for (let start = 0; start < file.length; ) {
    const at = file.indexOf(LINE_END, start);
    const isWhole = at >= 0;
    const end = isWhole ? at + 1 : file.length;
    yield { bytes: file.subarray(start, isWhole ? at : end), start, end, isWhole };
    start = end;
  }
}

/** Oldest first. */
export async function olderFiles(folder: string): Promise<{ name: string; from: number }[]> {
  const names = await readdir(folder).catch(nullIfMissing);
  const found = (names ?? []).flatMap((name) => {
    const [, from] = /^audit\.([1-9]\d{0,14})\.jsonl$/.exec(name) ?? [];
    return from === undefined ? [] : [{ name, from: Number(from) }];
  });
  return found.sort((a, b) => a.from - b.from);
}

/** Yields each file. The current one is read before the others are listed, so that a concurrent rename loses none. */
export async function* filesIn(
  folder: string,
  order: 'oldest first' | 'newest first',
): AsyncGenerator<{ name: string; from: number | null; bytes: Buffer }> {
  const current = await readIfThere(join(folder, CURRENT));
  const files = [...(await olderFiles(folder)), { name: CURRENT, from: null }];
  if (order === 'newest first') files.reverse();
  let isCurrentDone = false;
  for (const { name, from } of files) {
    const file = name === CURRENT ? current : await readIfThere(join(folder, name));
    const wasCurrent = file?.ino === current?.ino;
    if (file === null || (wasCurrent && isCurrentDone)) continue;
    isCurrentDone ||= wasCurrent;
    yield { name, from, bytes: file.bytes };
  }
}

/** Reads from an offset on. */
export async function readIfThere(path: string, from = 0): Promise<{ bytes: Buffer; ino: number } | null> {
  const file = await openFile(path).catch(nullIfMissing);
  if (file === null) return null;
  try {
    const { ino, size } = await file.stat();
    const length = Math.max(0, size - from);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, from);
    return { bytes: buffer.subarray(0, bytesRead), ino };
  } finally {
    await file.close();
  }
}

/** Throws for a pipe, which would block, and for a device, which is endless. */
export async function openFile(path: string, flags: number = constants.O_RDONLY): Promise<FileHandle> {
  const file = await open(path, flags | constants.O_NONBLOCK, 0o600);
  if (!(await file.stat()).isFile()) {
    await file.close();
    throw new Error(`${path} is no file; move it elsewhere`);
  }
  if (flags & constants.O_CREAT) giveToOwner(path);
  return file;
}

export async function readHead(folder: string): Promise<Head | 'is gone' | 'cannot be read'> {
  const file = await readIfThere(join(folder, HEAD));
  if (file === null) return 'is gone';
  try {
    return auditHead.parse(JSON.parse(file.bytes.toString()));
  } catch {
    return 'cannot be read';
  }
}

/** When it resolves, the head is on disk, replaced atomically. */
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
