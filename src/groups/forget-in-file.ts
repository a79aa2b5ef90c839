/**
 * Removes a phrase from a memory file: from MEMORY.md, the daily log and clipboards every line that contains it, from
 * archives only the words. Pure, and on bytes: everything else is preserved.
 */

import { BOM, decode, encode, linesOf } from '../core/byte-text.js';
import { splitFrontMatter } from '../core/front-matter.js';
import { FORGOTTEN, type Phrase } from '../core/phrase.js';
import { MESSAGE_HEADING } from './archive-text.js';
import { parseMemory } from './tiers.js';

export type Kind = 'memory' | 'daily' | 'archive' | 'clipboard' | 'transcript';

interface Forgotten {
  /** The removed lines, trimmed, as shown to people. */
  lines: string[];
  /** The identical buffer if the phrase does not occur. */
  left: Buffer;
}

export function forgetIn(file: Buffer, kind: Kind, phrase: Phrase): Forgotten {
  if (!phrase.isIn(file.toString('utf8'))) return { lines: [], left: file };
  if (kind === 'transcript') return forgetSaid(file.toString('utf8'), phrase);
  const whole = file.toString('latin1');
  const { lines, left } =
    kind === 'archive'
      ? forgetWords(whole, phrase)
      : forgetLines(whole, phrase, kind === 'memory' ? tierHeadings(file) : new Set());
  return { lines: lines.map((line) => decode(line).trim()), left: Buffer.from(left, 'latin1') };
}

/** `headings`: numbers of lines that are kept whatever they contain. */
function forgetLines(
  whole: string,
  phrase: Phrase,
  headings: Set<number>,
): { lines: string[]; left: string } {
  const bom = whole.startsWith(BOM) ? BOM : '';
  const all = linesOf(whole.slice(bom.length));
  const gone = new Set<number>();
  // Removing lines may bring others together that contain the phrase across them, so this repeats until none is left.
  for (let before = -1; gone.size > before; ) {
    before = gone.size;
    const left = [...all.keys()].filter((n) => !gone.has(n));
    for (const n of linesWith(
      left.map((n) => all[n] ?? ''),
      phrase,
    ).map((at) => left[at] ?? 0)) {
      if (!headings.has(n)) gone.add(n);
    }
  }
  const lines = all.filter((_, n) => gone.has(n));
  return { lines, left: bom + all.filter((_, n) => !gone.has(n)).join('') };
}

/** The lines of the tier headings: without its heading, a tier would become part of the one above. */
function tierHeadings(file: Buffer): Set<number> {
  const numbers = new Set<number>();
  const { source, sections } = parseMemory(file);
  const headings = sections.filter((section) => section.tier !== null);
  let at = 0;
  for (const [n, line] of linesOf(source).entries()) {
    while (at >= (headings[0]?.bodyStart ?? Infinity)) headings.shift();
    if (at >= (headings[0]?.start ?? Infinity)) numbers.add(n);
    at += line.length;
  }
  return numbers;
}

/** The numbers of the lines that contain the phrase, or a part of it where it spans lines. */
function linesWith(lines: string[], phrase: Phrase): number[] {
  const texts = lines.map(decode);
  const found = new Set<number>();
  let n = 0;
  let end = texts[0]?.length ?? 0;
  for (const range of phrase.rangesIn(texts.join(''))) {
    while (end <= range.start) end += texts[++n]?.length ?? Infinity;
    found.add(n);
    while (end < range.end) {
      end += texts[++n]?.length ?? Infinity;
      found.add(n);
    }
  }
  return [...found];
}

function forgetWords(whole: string, phrase: Phrase): { lines: string[]; left: string } {
  const lines: string[] = [];
  let left = '';
  for (const { bytes, ours } of archivePieces(whole)) {
    const text = decode(bytes);
    if (ours || !phrase.isIn(text)) {
      left += bytes;
      continue;
    }
    const all = linesOf(bytes);
    lines.push(...linesWith(all, phrase).map((n) => all[n] ?? ''));
    left += encode(phrase.replacedIn(text, FORGOTTEN));
  }
  return { lines, left };
}

/** A line of JSON for each message; what is none goes as a whole. */
function forgetSaid(whole: string, phrase: Phrase): Forgotten {
  const lines: string[] = [];
  const left = whole.split('\n').flatMap((line) => {
    const said = saidIn(line);
    if (said === null) {
      if (!phrase.isIn(line)) return [line];
      lines.push(line);
      return [];
    }
    const without = phrase.replacedIn(said.content, FORGOTTEN);
    if (without === said.content) return [line];
    lines.push(said.content.trim());
    return [JSON.stringify({ ...said, content: without })];
  });
  return { lines, left: Buffer.from(left.join('\n')) };
}

function saidIn(line: string): { content: string } | null {
  try {
    const said: unknown = JSON.parse(line);
    const content = (said as { content?: unknown } | null)?.content;
    return typeof content === 'string' ? (said as { content: string }) : null;
  } catch {
    return null;
  }
}

/** Splits an archive: what people said and their names, and our own parts, which must remain parseable. */
function archivePieces(whole: string): { bytes: string; ours: boolean }[] {
  const body = splitFrontMatter(whole)?.body ?? whole;
  const pieces = [{ bytes: whole.slice(0, whole.length - body.length), ours: true }];
  let said = '';
  for (const line of linesOf(body)) {
    const bare = line.replace(/(?<![\r\n])[\r\n]+$/, '');
    const heading = line.startsWith('## ') ? MESSAGE_HEADING.exec(decode(bare))?.groups : undefined;
    if (heading === undefined) {
      said += line;
      continue;
    }
    const nameEnd = bare.length - encode(heading.rest ?? '').length;
    pieces.push({ bytes: said, ours: false }, { bytes: '## ', ours: true });
    pieces.push({ bytes: line.slice(3, nameEnd), ours: false }, { bytes: line.slice(nameEnd), ours: true });
    said = '';
  }
  return [...pieces, { bytes: said, ours: false }];
}
