/** MEMORY.md as three tiers. Pure. Works on bytes as characters, so that a write preserves all else. */
import { BOM, decode, encode, endsLine } from '../core/file-text.js';
import type { Tier } from '../core/memory.js';

interface Heading {
  /** Offsets of its first character, and of the one after its line end. */
  start: number;
  bodyStart: number;
  title: string;
}

interface OpenFence {
  /** Where it ends: at the heading that interrupts it, or at the end of the text. */
  at: number;
  /** The line that would have closed it. */
  closer: string;
}

const HASHES = /^ {0,3}#{1,2}(?=[ \t]|$)/;
const UNDERLINE = /^ {0,3}(?:=+|-+)[ \t]*$/;
/** Also within a list item; not inline code, with another backtick on the line. */
const FENCE = /^ {0,3}(?<bullets>(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*)(?<fence>`{3,}(?![^`]*`)|~{3,})/;
/** Ends a paragraph: a blank line, a heading, or a thematic break. */
const BREAK = /^(?:[ \t]*$| {0,3}(?:#{1,6}(?:[ \t]|$)|([-*_])[ \t]*(?:\1[ \t]*){2,}$))/;
/** Opens a quotation or a list item: the text up to the next break belongs to it. */
const CONTAINER = /^ {0,3}(?:>|(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$))/;
/** Indented lines are code unless they continue a paragraph. */
const CODE = /^(?: {4}| {0,3}\t)/;
/** Cannot start any of the above. */
const PLAIN = /^[^\s#=`~*+_>\d-]/;

/**
 * Headings of level 1 and 2, and unclosed code fences, as in CommonMark. A scanner of our own, because a
 * Markdown parser takes seconds for megabytes. A fence hides the headings in it, and an open one would hide
 * all the rest: the next line that matches `breaksOpenFence` ends it and counts as a heading.
 */
export function findHeadings(
  source: string,
  breaksOpenFence: RegExp | null,
): { headings: Heading[]; openFences: OpenFence[] } {
  const headings: Heading[] = [];
  const openFences: OpenFence[] = [];
  const lineAt = lineReader(source);
  /** Lengths of fences for which no closing line was found up to the end. */
  const neverClosed: Record<string, number> = {};
  /** Start of a paragraph that an underline could turn into a heading. */
  let paragraph: number | null = null;
  let inContainer = false;

  for (let at = 0; at < source.length; ) {
    const start = at;
    const { text, next } = lineAt(start);
    at = next;
    if (PLAIN.test(text)) {
      if (!inContainer) paragraph ??= start;
      continue;
    }
    const { bullets, fence } = FENCE.exec(text)?.groups ?? {};
    if (fence !== undefined) {
      at = bullets ? endOfListFence(next, text, fence) : endOfFence(next, fence);
    } else if (HASHES.test(text)) {
      headings.push({ start, bodyStart: next, title: hashTitle(text) });
    } else if (paragraph !== null && UNDERLINE.test(text)) {
      const title = source.slice(paragraph, start).replace(/(?<![ \t])[ \t]*[\r\n]+[ \t]*/g, ' ');
      headings.push({ start: paragraph, bodyStart: next, title: trimBlanks(title) });
    } else if (!BREAK.test(text)) {
      if (CONTAINER.test(text)) inContainer = true;
      if (inContainer) paragraph = null;
      else if (!CODE.test(text)) paragraph ??= start;
      continue;
    }
    paragraph = null;
    inContainer = false;
  }
  return { headings, openFences };

  function endOfFence(from: number, fence: string): number {
    const mark = fence.charAt(0);
    if (fence.length < (neverClosed[mark] ?? Infinity)) {
      const closing = new RegExp(`^ {0,3}${mark}{${fence.length},}[ \\t]*$`, 'gm');
      closing.lastIndex = from;
      const closed = closing.exec(source);
      if (closed !== null) return lineAt(closed.index).next;
      neverClosed[mark] = fence.length;
    }
    let at = from;
    while (at < source.length && !breaksOpenFence?.test(lineAt(at).text)) at = lineAt(at).next;
    openFences.push({ at, closer: fence });
    return at;
  }

  /** A fence in a list item ends no later than the item: at the first text with less indentation. */
  function endOfListFence(from: number, line: string, fence: string): number {
    const column = line.indexOf(fence);
    const indent = ' '.repeat(column);
    const closing = new RegExp(`^ {0,${column + 3}}${fence.charAt(0)}{${fence.length},}[ \\t]*$`);
    for (let at = from; at < source.length; ) {
      const { text, next } = lineAt(at);
      if (!/^[ \t]*$/.test(text) && !text.startsWith(indent) && !text.startsWith('\t')) return at;
      if (closing.test(text)) return next;
      at = next;
    }
    openFences.push({ at: source.length, closer: indent + fence });
    return source.length;
  }
}

/** Whether a piece without level 1 or 2 headings contains only lower headings and blank lines. */
export function isBlank(piece: string): boolean {
  return !/[^ \t\r\n]/.test(piece.replace(/^ {0,3}#{3,6}(?=[ \t\r\n]|$)[^\r\n]*/gm, ''));
}

/** Returns the line at an offset without its line end, and where the next line starts. */
function lineReader(source: string): (start: number) => { text: string; next: number } {
  const line = /([^\r\n]*)(?:\r\n|\n|\r)?/y;
  return (start) => {
    line.lastIndex = start;
    const text = line.exec(source)?.[1] ?? '';
    return { text, next: line.lastIndex };
  };
}

function hashTitle(line: string): string {
  return trimBlanks(line.replace(/^ *#+/, '').replace(/(^|[ \t])#+[ \t]*$/, ''));
}

/** Not `trim`: a byte that looks like a no-break space is part of another character. */
function trimBlanks(text: string): string {
  return text.replace(/^[ \t]+|[ \t]+$/g, '');
}

export const TIERS: readonly Tier[] = [1, 2, 3];

const HEADING_LINES: Record<Tier, string> = {
  1: '## Tier 1 — Long term',
  2: '## Tier 2 — Mid term',
  3: '## Tier 3 — Short term',
};

export const NEW_MEMORY = `# Memory\n\n${TIERS.map((tier) => HEADING_LINES[tier]).join('\n\n')}\n`;

/** The part of the file from one level 1 or 2 heading to the next; `tier` if it is a tier's heading. */
interface Section {
  tier: Tier | null;
  start: number;
  bodyStart: number;
  end: number;
  /** Closes a fence left open in it, for reading this part alone. */
  closer: string | null;
}

export interface ParsedMemory {
  /** One character per byte, without `bom`. */
  source: string;
  bom: string;
  preamble: string;
  sections: Section[];
  openFences: OpenFence[];
}

// People type other dashes, a colon, other capitals, or omit the words. In UTF-8 bytes, like everything in
// this file.
const SPACE = '(?:[ \\t]|\\xc2\\xa0)';
const DASH = '(?:\\xe2\\x80[\\x92-\\x95]|\\xe2\\x88\\x92|-{1,2}|:)';
const words = (term: string) => `(?:(?:${SPACE}*${DASH}${SPACE}*|${SPACE}+)${term}(?:[ \\t]|-)?term)?:?`;
const TITLE = `tier${SPACE}*(?:1${words('long')}|2${words('(?:mid|medium)')}|3${words('short')})`;
const TIER_TITLE = new RegExp(`^${TITLE}$`, 'i');
const TIER_LINE = new RegExp(`^ {0,3}#{1,2}[ \\t]+${TITLE}(?:[ \\t]*#+)?[ \\t]*$`, 'i');

export function parseMemory(file: Buffer): ParsedMemory {
  const whole = file.toString('latin1');
  const bom = whole.startsWith(BOM) ? BOM : '';
  const source = whole.slice(bom.length);
  const { headings, openFences } = findHeadings(source, TIER_LINE);
  const closers = new Map(openFences.map((fence) => [fence.at, fence.closer]));
  const sections = headings.map((heading, index): Section => {
    const end = headings[index + 1]?.start ?? source.length;
    const { start, bodyStart } = heading;
    return { tier: tierOf(heading), start, bodyStart, end, closer: closers.get(end) ?? null };
  });
  return { source, bom, preamble: source.slice(0, headings[0]?.start), sections, openFences };
}

/** A tier's text: trimmed, line ends normalised, sections under repeated headings joined. */
export function tierText(file: ParsedMemory, tier: Tier): string {
  return file.sections
    .filter((section) => section.tier === tier)
    .map((section) => sectionText(file, section))
    .filter((text) => text !== '')
    .join('\n\n');
}

export function wholeText(file: ParsedMemory): string {
  return decode(file.source);
}

/** Whether it contains nothing but headings. */
export function isEmpty(file: ParsedMemory): boolean {
  const { source, sections, preamble } = file;
  return (
    isBlank(preamble) && sections.every((section) => isBlank(source.slice(section.bodyStart, section.end)))
  );
}

/** The tiers that have text beyond the first `visible` characters of the file. */
export function tiersBeyond(file: ParsedMemory, visible: number): Set<Tier> {
  const beyond = new Set<Tier>();
  let before = decode(file.preamble).length;
  for (const { tier, start, bodyStart, end } of file.sections) {
    const heading = decode(file.source.slice(start, bodyStart)).length;
    const body = decode(file.source.slice(bodyStart, end));
    const text = body.trimEnd().length;
    if (tier !== null && text > 0 && before + heading + text > visible) beyond.add(tier);
    before += heading + body.length;
  }
  return beyond;
}

/** The part of a tier's text for its first section; null if the text does not end with the others. */
export function firstPiece(file: ParsedMemory, tier: Tier, text: string): string | null {
  const others = file.sections.filter((section) => section.tier === tier).slice(1);
  const rest = tierText({ ...file, sections: others }, tier);
  if (rest === '') return text;
  if (text === rest) return '';
  return text.endsWith(`\n\n${rest}`) ? text.slice(0, -rest.length - 2) : null;
}

/** The file with one tier's text replaced; adds a missing heading in the tier's proper position. */
export function withTier(file: ParsedMemory, tier: Tier, content: string): Buffer {
  const { source, bom, sections, openFences } = file;
  const eol = /\r\n|\n|\r/.exec(source)?.[0] ?? '\n';
  const text = encode(content).replaceAll('\n', eol);
  const section = sections.find((section) => section.tier === tier);

  const from = section?.bodyStart ?? positionFor(file, tier);
  const to = section?.end ?? from;
  const last = to === source.length;

  // A fence left open further up would now end in this tier's text, so its closing line is added.
  let head = '';
  let done = 0;
  for (const fence of openFences.filter((fence) => fence.at <= from)) {
    head += source.slice(done, fence.at);
    head += (endsLine(head) ? '' : eol) + fence.closer + eol;
    done = fence.at;
  }
  head += source.slice(done, from);

  const piece = section
    ? withSameSpace(file, section, text) || spaced(text, eol, last, endsLine(head))
    : gapAfter(head, eol) + encode(HEADING_LINES[tier]) + eol + spaced(text, eol, last, true);
  return Buffer.from(bom + head + piece + source.slice(to), 'latin1');
}

/** Lowers its headings to level 3 and closes an open fence: it can neither end its tier nor swallow the next. */
export function fitForTier(content: string): string {
  const plain = content.replace(/\r\n?/g, '\n').trim();
  const source = encode(plain);
  let lowered = '';
  let done = 0;
  for (const heading of findHeadings(source, null).headings) {
    lowered += source.slice(done, heading.start);
    const title = decode(heading.title).trim();
    lowered +=
      (title === '' ? '###' : encode(`### ${title}`)) +
      (endsLine(source.slice(0, heading.bodyStart)) ? '\n' : '');
    done = heading.bodyStart;
  }
  lowered += source.slice(done);
  const open = findHeadings(lowered, null).openFences[0];
  return decode(open ? `${lowered}\n${open.closer}` : lowered);
}

function tierOf(heading: Heading): Tier | null {
  const number = TIER_TITLE.test(heading.title) ? Number(/[123]/.exec(heading.title)?.[0]) : 0;
  return TIERS.find((tier) => tier === number) ?? null;
}

function sectionText(file: ParsedMemory, section: Section): string {
  const raw = file.source.slice(section.bodyStart, section.end);
  const whole = section.closer === null ? raw : raw + (endsLine(raw) ? '' : '\n') + section.closer;
  return decode(whole).replace(/\r\n?/g, '\n').trim();
}

/** Replaces a text but keeps the blank lines around it; empty if there was no text. */
function withSameSpace({ source }: ParsedMemory, { bodyStart, end }: Section, text: string): string {
  const was = source.slice(bodyStart, end);
  if (text === '' || !/[^ \t\r\n]/.test(was)) return '';
  const linesBefore = /^(?:[ \t]*[\r\n])*/.exec(was)?.[0] ?? '';
  let textEnd = was.length;
  while (/[ \t\r\n]/.test(was.charAt(textEnd - 1))) textEnd--;
  const gap = was.slice(textEnd);
  // An underlined heading would absorb a line directly before it.
  const safe = end === source.length || /^ {0,3}#{1,2}(?:[ \t\r\n]|$)/.test(source.slice(end, end + 6));
  return safe || /^[ \t]*(?:\r\n|\n|\r(?!\n))[ \t]*[\r\n]/.test(gap) ? linesBefore + text + gap : '';
}

/** A tier's text between its heading and the next, with one blank line around it. */
function spaced(text: string, eol: string, last: boolean, lineEnded: boolean): string {
  if (text === '') return last ? '' : eol;
  return (lineEnded ? '' : eol) + eol + text + eol + (last ? '' : eol);
}

/** After the nearest tier with a lower number, else before the nearest with a higher one, else at the end. */
function positionFor({ sections, source }: ParsedMemory, tier: Tier): number {
  for (let lower = tier - 1; lower >= 1; lower--) {
    const section = sections.findLast((section) => section.tier === lower);
    if (section) return section.end;
  }
  for (let higher = tier + 1; higher <= 3; higher++) {
    const section = sections.find((section) => section.tier === higher);
    if (section) return section.start;
  }
  return source.length;
}

/** Line ends needed to put a blank line before the next line. */
function gapAfter(head: string, eol: string): string {
  if (head === '' || /(?:^|\n|\r(?!\n))(?:\r\n|\n|\r)$/.test(head.slice(-3))) return '';
  return endsLine(head) ? eol : eol + eol;
}
