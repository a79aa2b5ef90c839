/**
 * One line of the audit log: JSON whose last field is the SHA-256 of everything before it, and which names the hash of
 * the line before. The hash is of the bytes as they stand there, so that nothing can be written in another way. Pure.
 */
import { createHash } from 'node:crypto';
import { cutAt } from '../core/cut.js';
import { AUDIT_KINDS, type AuditEntry } from '../core/journal.js';

export interface AuditLine extends AuditEntry {
  /** 1, 2, 3, … over all files. */
  n: number;
  /** ISO 8601. */
  at: string;
  /** Of kind `torn`: what a crash left before this line and is no line. */
  torn?: { bytes: number; hash: string };
  /** The hash of the line before. */
  before: string;
  hash: string;
}

/** A line that is to be written. */
export type Draft = Omit<AuditLine, 'n' | 'before' | 'hash'>;

/** What the chain has come to. */
export interface Link {
  n: number;
  hash: string;
}

/** Before the first line. */
export const BEGINNING: Link = { n: 0, hash: '0'.repeat(64) };

/** A longer one was not written by us. */
export const MOST_LINE_BYTES = 4_000_000;

const WHO_CHARS = 400;
const WHAT_CHARS = 1_000;
const DETAIL_CHARS = 20_000;

export function lineOf(draft: Draft, { n, hash: before }: Link): { text: string; link: Link } {
  const { at, kind, who, where, what, word, details, torn } = draft;
  const fields = JSON.stringify({
    ...{ n: n + 1, at, kind, who: plain(who, WHO_CHARS) },
    ...{ where: where && plain(where, WHO_CHARS), what: plain(what, WHAT_CHARS) },
    word: word && plain(word, WHO_CHARS),
    ...(details && {
      details: Object.fromEntries(
        Object.entries(details).map(([name, value]) => [plain(name, WHO_CHARS), plain(value, DETAIL_CHARS)]),
      ),
    }),
    ...(torn && { torn }),
    before,
  });
  const hash = hashOf(fields);
  return { text: `${fields.slice(0, -1)},"hash":"${hash}"}\n`, link: { n: n + 1, hash } };
}

/** null for what is no line of ours. `intact`: it is as it was written. */
export function readLine(bytes: Buffer): { line: AuditLine; intact: boolean } | null {
  const text = bytes.toString('utf8');
  const [, fields, hash] = /^(\{.*),"hash":"([0-9a-f]{64})"\}$/s.exec(text) ?? [];
  if (fields === undefined) return null;
  let line: Partial<AuditLine>;
  try {
    line = JSON.parse(text) as Partial<AuditLine>;
  } catch {
    return null;
  }
  if (!isLine(line)) return null;
  // Bytes that are no UTF-8 read the same as others: only what comes back whole is what was written.
  return { line, intact: hashOf(`${fields}}`) === hash && Buffer.from(text).equals(bytes) };
}

function isLine(line: Partial<AuditLine>): line is AuditLine {
  const { n, at, kind, who, where, what, word, before, details, torn } = line;
  return (
    Number.isSafeInteger(n) &&
    [at, who, what, before].every((value) => typeof value === 'string') &&
    [where, word].every((value) => value === null || typeof value === 'string') &&
    (AUDIT_KINDS as readonly unknown[]).includes(kind) &&
    (details === undefined || (typeof details === 'object' && details !== null)) &&
    (torn === undefined || (typeof torn === 'object' && torn !== null))
  );
}

/**
 * Anybody may be called anything: without line ends, control characters, and marks that are not seen or turn the writing,
 * but with the joiners of emoji and scripts.
 */
export function plain(text: string, most: number): string {
  const safe = text.replace(/(?:(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029])+/gu, ' ').trim();
  return safe.length <= most ? safe : `${cutAt(safe, most)} … (${safe.length} characters)`;
}

export function hashOf(data: string | Buffer): string {
  return createHash('sha256').update(data).digest('hex');
}
