/**
 * MEMORY.md as three tiers: finds each, reads its text, and replaces it. Pure, and on bytes: a write preserves
 * everything else that a person put into the file.
 */

import { BOM, decode, encode, endsLine } from '../core/byte-text.js';
import type { Tier } from '../core/memory.js';
import { findHeadings, type Heading, isBlank, type OpenFence } from './headings.js';

export const TIERS: readonly Tier[] = [1, 2, 3];

const HEADING_LINES: Record<Tier, string> = {
  1: '## Tier 1 — Long term',
  2: '## Tier 2 — Mid term',
  3: '## Tier 3 — Short term',
};

export const NEW_MEMORY = `# Memory\n\n${TIERS.map((tier) => HEADING_LINES[tier]).join('\n\n')}\n`;

/** The part of the file from one heading of level 1 or 2 to the next; `tier` if it is a tier's heading. */
interface Section {
  tier: Tier | null;
  start: number;
  bodyStart: number;
  end: number;
  /** What closes a fence left open in it, for reading this part alone. */
  closer: string | null;
}

export interface ParsedMemory {
  /** One character per byte, without `bom`. */
  source: string;
  bom: string;
  /** The text before the first heading. */
  preamble: string;
  sections: Section[];
  openFences: OpenFence[];
}

// People type other dashes, a colon, other capitals, or leave the words out. In UTF-8 bytes, like everything in this
// file.
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

/** A tier's text: trimmed, with plain line ends, sections under repeated headings joined. */
export function tierText(file: ParsedMemory, tier: Tier): string {
  return file.sections
    .filter((section) => section.tier === tier)
    .map((section) => sectionText(file, section))
    .filter((text) => text !== '')
    .join('\n\n');
}

/** The whole file as decoded text. */
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

/**
 * The part of a tier's text that belongs into its first section if the other sections stay unchanged; null if the text
 * does not end with theirs.
 */
export function firstPiece(file: ParsedMemory, tier: Tier, text: string): string | null {
  const others = file.sections.filter((section) => section.tier === tier).slice(1);
  const rest = tierText({ ...file, sections: others }, tier);
  if (rest === '') return text;
  if (text === rest) return '';
  return text.endsWith(`\n\n${rest}`) ? text.slice(0, -rest.length - 2) : null;
}

/** The file with one tier's text replaced; a missing heading is added in the tier's proper position. */
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

/**
 * Makes content fit under a tier's heading: plain line ends, trimmed, headings of level 1 and 2 lowered to level 3, an
 * open fence closed. It can then neither end its tier nor swallow the next.
 */
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

/** Replaces a text and keeps the blank lines that a person left around it; empty if there was no text. */
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

/** The line ends needed so that the next line follows a blank one. */
function gapAfter(head: string, eol: string): string {
  if (head === '' || /(?:^|\n|\r(?!\n))(?:\r\n|\n|\r)$/.test(head.slice(-3))) return '';
  return endsLine(head) ? eol : eol + eol;
}
