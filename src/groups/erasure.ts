/**
 * A file that holds what is remembered, without a phrase: of MEMORY.md and the daily log the lines go in which it
 * stands, of archives the words. Pure, and on bytes: all else comes out as it went in.
 */
import { FORGOTTEN, type Phrase } from '../core/phrase.js';
import { MESSAGE_HEADING } from './archive-text.js';
import { BOM, decode, encode, linesOf } from './bytes.js';
import { splitFrontMatter } from './front-matter.js';
import { parseMemory } from './tiers.js';

export type Kind = 'memory' | 'daily' | 'archive';

/** The lines in which the phrase stands, as a person would see them. */
export function linesHolding(file: Buffer, kind: Kind, phrase: Phrase): string[] {
  if (!phrase.isIn(file.toString('utf8'))) return [];
  const found = kind === 'archive' ? saidLines(file, phrase) : linesOfFile(file, kind, phrase).gone;
  return found.map((line) => decode(line).trim());
}

/** The very buffer when nothing goes. */
export function withoutPhrase(file: Buffer, kind: Kind, phrase: Phrase): Buffer {
  if (!phrase.isIn(file.toString('utf8'))) return file;
  if (kind === 'archive') {
    const parts = archiveParts(file).map(({ bytes, fixed }) => (fixed ? bytes : withoutWords(bytes, phrase)));
    return Buffer.from(parts.join(''), 'latin1');
  }
  const { bom, left } = linesOfFile(file, kind, phrase);
  return Buffer.from(bom + left.join(''), 'latin1');
}

function linesOfFile(
  file: Buffer,
  kind: Kind,
  phrase: Phrase,
): { bom: string; gone: string[]; left: string[] } {
  const whole = file.toString('latin1');
  const bom = whole.startsWith(BOM) ? BOM : '';
  const lines = linesOf(whole.slice(bom.length));
  const go = linesToGo(lines, phrase, kind === 'memory' ? tierHeadings(file) : new Set());
  return { bom, gone: lines.filter((_, n) => go.has(n)), left: lines.filter((_, n) => !go.has(n)) };
}

/** The lines that make the headings of tiers: without one, its tier would belong to the one above. */
function tierHeadings(file: Buffer): Set<number> {
  const lines = new Set<number>();
  const { source, sections } = parseMemory(file);
  const headings = sections.filter((section) => section.tier !== null);
  let at = 0;
  for (const [n, line] of linesOf(source).entries()) {
    while (at >= (headings[0]?.bodyStart ?? Infinity)) headings.shift();
    if (at >= (headings[0]?.start ?? Infinity)) lines.add(n);
    at += line.length;
  }
  return lines;
}

/** Also lines that hold the phrase between them only once others are gone: it is to be found nowhere any more. */
function linesToGo(lines: string[], phrase: Phrase, stay: Set<number>): Set<number> {
  const gone = new Set<number>();
  for (;;) {
    const left = [...lines.entries()].filter(([n]) => !gone.has(n));
    const here = touched(
      left.map(([, line]) => line),
      phrase,
    );
    const found = left.filter(([n], at) => here.has(at) && !stay.has(n));
    if (found.length === 0) return gone;
    for (const [n] of found) gone.add(n);
  }
}

/** Which lines hold the phrase or a part of one that runs over line ends. */
function touched(lines: string[], phrase: Phrase): Set<number> {
  const texts = lines.map(decode);
  const found = new Set<number>();
  let n = 0;
  let end = texts[0]?.length ?? 0;
  for (const place of phrase.placesIn(texts.join(''))) {
    while (end <= place.start) end += texts[++n]?.length ?? Infinity;
    found.add(n);
    while (end < place.end) {
      end += texts[++n]?.length ?? Infinity;
      found.add(n);
    }
  }
  return found;
}

function saidLines(file: Buffer, phrase: Phrase): string[] {
  const said = archiveParts(file).filter((part) => !part.fixed);
  return said.flatMap(({ bytes }) => {
    const lines = linesOf(bytes);
    const here = touched(lines, phrase);
    return lines.filter((_, n) => here.has(n));
  });
}

function withoutWords(bytes: string, phrase: Phrase): string {
  const text = decode(bytes);
  const without = phrase.replacedIn(text, FORGOTTEN);
  return without === text ? bytes : encode(without);
}

/** An archive in pieces: what people said and are called, and what is ours (`fixed`) and has to stay readable. */
function archiveParts(file: Buffer): { bytes: string; fixed: boolean }[] {
  const whole = file.toString('latin1');
  const front = splitFrontMatter(whole);
  const body = front?.body ?? whole;
  const parts = [{ bytes: whole.slice(0, whole.length - body.length), fixed: true }];
  let said = '';
  for (const line of linesOf(body)) {
    const bare = line.replace(/[\r\n]+$/, '');
    const heading = line.startsWith('## ') ? MESSAGE_HEADING.exec(decode(bare))?.groups : undefined;
    if (heading === undefined) {
      said += line;
      continue;
    }
    const name = line.slice(0, bare.length - encode(heading.rest ?? '').length).slice(3);
    parts.push({ bytes: said, fixed: false }, { bytes: '## ', fixed: true }, { bytes: name, fixed: false });
    parts.push({ bytes: line.slice(3 + name.length), fixed: true });
    said = '';
  }
  parts.push({ bytes: said, fixed: false });
  return parts;
}
