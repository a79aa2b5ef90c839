/**
 * Splits memory files into chunks to search: lines of MEMORY.md with their tier, lines of daily logs with their day,
 * messages of archives. Pure, and a generator, because a file may be large.
 */

import { piecesOf } from '../core/cut.js';
import { localMidnight, type Zone } from '../core/dates.js';

export interface FileChunk {
  text: string;
  line: number;
  tier: 1 | 2 | 3 | null;
  at: number | null;
  /** For an archived message: its author, and its id in the store. */
  author: string;
  message: number | null;
}

const NOON_MS = 12 * 3_600_000;
const HEADING = /^## (.*) · (\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d) <!-- m(\d+) -->\s*$/;
/** Of a conversation that another program wrote down, in the name of the archive alone. */
const BEGUN = /^archive\/(\d{4})-(\d\d)-(\d\d)T(\d\d)-(\d\d)-\d\d/;
const FOREIGN_HEADING = /^## (.*\S)\s*$/;
/** An imported day may stand beside one that was there. */
const DAY = /(?:^|\/)memory\/(\d{4})-(\d\d)-(\d\d)(?:\.imported(?:-\d+)?)?\.md$/;
const TIER = /^#{1,2}\s+Tier\s+([123])\b/i;

export function fileChunks(file: string, text: string, zone: Zone): Generator<FileChunk> {
  if (file.startsWith('archive/')) {
    return hasOwnHeading(text) ? archiveChunks(text, zone) : foreignChunks(file, text, zone);
  }
  const [, year, month, date] = DAY.exec(file) ?? [];
  const at =
    year === undefined ? null : localMidnight(Number(year), Number(month), Number(date), zone) + NOON_MS;
  return lineChunks(text, Number.isFinite(at) ? at : null, file.endsWith('MEMORY.md'));
}

function* lineChunks(text: string, at: number | null, tiered: boolean): Generator<FileChunk> {
  let tier: FileChunk['tier'] = null;
  for (const { line, number } of lines(text)) {
    if (/^#{1,2}\s/.test(line)) {
      const named = TIER.exec(line)?.[1];
      tier = tiered && named !== undefined ? (Number(named) as 1 | 2 | 3) : null;
    }
    // Headings are only structure; the content is below them.
    const said = line.trim();
    if (!/[\p{L}\p{N}]/u.test(said) || /^#{1,2}\s/.test(said)) continue;
    yield* cut({ text: said, line: number, tier, at, author: '', message: null });
  }
}

function* archiveChunks(text: string, zone: Zone): Generator<FileChunk> {
  let current: FileChunk | null = null;
  for (const { line, number } of lines(text)) {
    const [, author = '', year, month, date, hour, minute, message] = HEADING.exec(line) ?? [];
    if (message !== undefined) {
      if (current !== null) yield* cut(current);
      const midnight = localMidnight(Number(year), Number(month), Number(date), zone);
      const at = midnight + (Number(hour) * 60 + Number(minute)) * 60_000;
      current = { text: '', line: number, tier: null, at, author, message: Number(message) };
    } else if (current !== null) {
      current.text += `${current.text === '' ? '' : '\n'}${line}`;
    }
  }
  if (current !== null) yield* cut(current);
}

function hasOwnHeading(text: string): boolean {
  for (const { line } of lines(text)) if (HEADING.test(line)) return true;
  return false;
}

/** As MicroClaw keeps conversations: a heading with whoever speaks, and no times. */
function* foreignChunks(file: string, text: string, zone: Zone): Generator<FileChunk> {
  const [year, month, date, hour, minute] = (BEGUN.exec(file) ?? []).slice(1).map(Number);
  const midnight =
    year === undefined || month === undefined || date === undefined
      ? Number.NaN
      : localMidnight(year, month, date, zone);
  const begun = midnight + ((hour ?? 0) * 60 + (minute ?? 0)) * 60_000;
  const at = Number.isFinite(begun) ? begun : null;
  let current: FileChunk = { text: '', line: 1, tier: null, at, author: '', message: null };
  let fences = text.startsWith('---\n') ? 2 : 0;
  for (const { line, number } of lines(text)) {
    if (fences > 0) {
      if (line === '---') fences--;
      continue;
    }
    const author = FOREIGN_HEADING.exec(line)?.[1];
    if (author !== undefined || line.trim() === '') yield* cut(current);
    if (author !== undefined) current = { ...current, text: '', line: number, author };
    else if (line.trim() === '') current = { ...current, text: '', line: number };
    else current.text += `${current.text === '' ? '' : '\n'}${line}`;
  }
  yield* cut(current);
}

function* lines(text: string): Generator<{ line: string; number: number }> {
  let number = 0;
  for (let from = 0; from < text.length; ) {
    const end = text.indexOf('\n', from);
    const until = end < 0 ? text.length : end;
    yield { line: text.slice(from, text[until - 1] === '\r' ? until - 1 : until), number: ++number };
    from = until + 1;
  }
}

function* cut(chunk: FileChunk): Generator<FileChunk> {
  for (const text of piecesOf(chunk.text)) yield { ...chunk, text };
}
