/** A part as lines of runs, for platforms with inline markup, whose differences are in `Markup`. */
import type { Mark, Part } from '../../core/channel.js';
import { isOwnLabel } from './inline.js';

/**
 * Spans of the whole text, in order, none empty, with their marks, outermost first. Marks may be unsorted, overlap, or
 * exceed the text.
 */
export function spansOf({ text, marks }: Part) {
  const waiting = marks
    .filter((mark) => mark.length > 0)
    .sort((one, other) => one.offset - other.offset || other.length - one.length);
  const ends = waiting.flatMap((mark) => [mark.offset, endOf(mark)]);
  const edges = [text.length, ...ends.filter((edge) => edge < text.length)].sort((a, b) => a - b);
  const spans: { start: number; end: number; marks: readonly Mark[] }[] = [];
  let open: Mark[] = [];
  let next = 0;
  let start = 0;
  for (const end of edges) {
    if (end === start) continue;
    if (open.some((mark) => endOf(mark) <= start)) open = open.filter((mark) => endOf(mark) > start);
    for (let mark = waiting[next]; mark !== undefined && mark.offset <= start; mark = waiting[next]) {
      open = [...open, mark];
      next += 1;
    }
    spans.push({ start, end, marks: open });
    start = end;
  }
  return spans;
}

export function endOf(mark: Mark): number {
  return mark.offset + mark.length;
}

export type Style = 'link' | 'strike' | 'bold' | 'italic';

/** A piece of a line with uniform styles. */
export interface StyledRun {
  /** `raw`: already in the platform's markup. */
  kind: 'text' | 'space' | 'code' | 'raw';
  text: string;
  styles: readonly Style[];
  /** The link's target, where `link` is among the styles. */
  url: string;
}

/** Adds whitespace at either end as a run of its own. */
export function addSpaced(runs: StyledRun[], run: StyledRun): void {
  const { text } = run;
  if (text === '') return;
  const bare = text.trim();
  const from = bare === '' ? text.length : text.indexOf(bare);
  const to = from + bare.length;
  if (from > 0) runs.push({ ...run, kind: 'space', text: text.slice(0, from) });
  if (bare !== '') runs.push({ ...run, text: bare });
  if (to < text.length) runs.push({ ...run, kind: 'space', text: text.slice(to) });
}

function isBlank(runs: readonly StyledRun[]): boolean {
  return runs.every((run) => run.kind === 'space');
}

export function textOf(runs: readonly StyledRun[]): string {
  return runs.map(({ text }) => text).join('');
}

/** The line's unstyled start, then an `x` for the rest. */
function startOf(runs: readonly StyledRun[]): string {
  let start = '';
  for (const run of runs) {
    if (run.kind !== 'space' && (run.kind !== 'text' || run.styles.length > 0)) return `${start}x`;
    start += run.text;
  }
  return start;
}

/** Drops that many characters, where a list item's marker is written instead. */
export function withoutStart(runs: readonly StyledRun[], length: number): readonly StyledRun[] {
  if (length === 0) return runs;
  const rest: StyledRun[] = [];
  let left = length;
  for (const run of runs) {
    const taken = Math.min(left, run.text.length);
    left -= taken;
    if (taken === 0) rest.push(run);
    else if (taken < run.text.length) addSpaced(rest, { ...run, text: run.text.slice(taken) });
  }
  return rest;
}

/** Adjacent runs with equal styles are merged; whitespace loses styles that the adjacent words lack. */
export function normalised(runs: readonly StyledRun[]): StyledRun[] {
  const merged: StyledRun[] = [];
  for (const run of runs) {
    const last = merged.at(-1);
    const styles = last === undefined ? [] : stylesInBoth(last, run);
    const isAlike = styles.length === run.styles.length && styles.length === last?.styles.length;
    if (last?.kind === run.kind && (isAlike || run.kind === 'space')) {
      merged[merged.length - 1] = { ...last, text: last.text + run.text, styles };
    } else merged.push(run);
  }
  return merged.map((run, at) => {
    if (run.kind !== 'space' || run.styles.length === 0) return run;
    const [before, after] = [merged[at - 1], merged[at + 1]];
    const styles = before && after ? stylesInBoth({ ...run, styles: stylesInBoth(run, before) }, after) : [];
    return { ...run, styles };
  });
}

function stylesInBoth(run: StyledRun, other: StyledRun): Style[] {
  return run.styles.filter((style) => hasStyle(other, style, run.url));
}

function hasStyle(run: StyledRun, style: Style, url: string): boolean {
  return run.styles.includes(style) && (style !== 'link' || run.url === url);
}

export function without(run: StyledRun, unwanted: readonly Style[]): StyledRun {
  if (!run.styles.some((style) => unwanted.includes(style))) return run;
  return { ...run, styles: run.styles.filter((style) => !unwanted.includes(style)) };
}

/** Groups of consecutive runs with the same key. */
export function grouped(runs: readonly StyledRun[], keyOf: (run: StyledRun) => unknown): StyledRun[][] {
  const groups: StyledRun[][] = [];
  let last: unknown;
  for (const run of runs) {
    const key = keyOf(run);
    if (groups.length > 0 && key === last) groups.at(-1)?.push(run);
    else groups.push([run]);
    last = key;
  }
  return groups;
}

/** Links that are not kept lose their style; the address follows the label, unless that is the address. */
export function withAddressesShown(
  runs: readonly StyledRun[],
  isKept: (link: readonly StyledRun[], url: string) => boolean,
  addressOf: (url: string) => StyledRun[],
): StyledRun[] {
  const links = grouped(runs, (run) => (run.styles.includes('link') ? run.url : null));
  return links.flatMap((link) => {
    const [first] = link;
    if (!first?.styles.includes('link') || isKept(link, first.url)) return link;
    const label = link.map((run) => without(run, ['link']));
    return isOwnLabel(textOf(link), first.url) ? label : [...label, ...addressOf(first.url)];
  });
}

type Block =
  | { kind: 'line'; quoted: boolean; runs: StyledRun[] }
  | { kind: 'pre'; language: string; text: string };

/**
 * Emphasis across a line end is repeated on both lines, since not every platform lets it continue. A line
 * that overlaps a quote is quoted whole; a code block is never in a quote.
 */
function blocksOf(part: Part): Block[] {
  const { text } = part;
  const blocks: Block[] = [];
  let runs: StyledRun[] = [];
  let quoted = false;
  /** Of the last code block, the line end right after it included. */
  let fenceEnd = 0;

  function endLine(): void {
    const last = blocks.at(-1);
    const isInside = !isBlank(runs) || (last?.kind === 'line' && last.quoted);
    blocks.push({ kind: 'line', quoted: quoted && isInside, runs });
    runs = [];
    quoted = false;
  }

  for (const { start, end, marks } of spansOf(part)) {
    const at = Math.max(start, fenceEnd);
    if (at >= end) continue;
    const pre = marks.find((mark) => mark.kind === 'pre');
    if (pre !== undefined) {
      if (runs.length > 0) endLine();
      const to = endOf(pre);
      blocks.push({ kind: 'pre', language: pre.language, text: text.slice(at, to) });
      fenceEnd = text[to] === '\n' ? to + 1 : to;
      continue;
    }
    const style = styleOf(marks);
    const inQuote = marks.some((mark) => mark.kind === 'quote');
    for (const piece of text.slice(at, end).split(/(\n)/)) {
      const endsHere = piece === '\n';
      if (!endsHere) addSpaced(runs, { ...style, text: piece });
      quoted ||= inQuote && (endsHere ? isBlank(runs) : piece.trim() !== '');
      if (endsHere) endLine();
    }
  }
  if (runs.length > 0) endLine();
  // An empty line inside a quote belongs to it, but not one at its start or end.
  let isGoingOn = false;
  for (const block of blocks.toReversed()) {
    if (block.kind === 'line' && isBlank(block.runs)) block.quoted &&= isGoingOn;
    isGoingOn = block.kind === 'line' && block.quoted;
  }
  return blocks;
}

function styleOf(marks: readonly Mark[]): Omit<StyledRun, 'text'> {
  let kind: StyledRun['kind'] = 'text';
  let url = '';
  const styles: Style[] = [];
  for (const mark of marks) {
    if (mark.kind === 'code') kind = 'code';
    else if (mark.kind !== 'quote' && mark.kind !== 'pre' && !styles.includes(mark.kind)) {
      styles.push(mark.kind);
      if (mark.kind === 'link') url = mark.url;
    }
  }
  return { kind, styles, url };
}

interface Markers {
  open(style: Style, run: StyledRun): void;
  close(style: Style, run: StyledRun): void;
  text(run: StyledRun): void;
}

/** Outermost first, for styles with equal ranges. */
const ORDER: readonly Style[] = ['link', 'strike', 'bold', 'italic'];

/** Writes styled runs with properly nested markers: of styles that begin together, the longest is outermost. */
export function nest(runs: readonly StyledRun[], markers: Markers, open: readonly Style[] = []): void {
  for (let from = 0, run = runs[0]; run !== undefined; run = runs[from]) {
    let longest: Style | null = null;
    let to = from + 1;
    // No marker opens before a space.
    for (const style of run.kind === 'space' ? [] : ORDER) {
      if (open.includes(style) || !run.styles.includes(style)) continue;
      const end = endOfStyle(runs, from, style);
      if (longest !== null && end <= to) continue;
      longest = style;
      to = end;
    }
    if (longest === null) {
      markers.text(run);
    } else {
      markers.open(longest, run);
      nest(runs.slice(from, to), markers, [...open, longest]);
      markers.close(longest, run);
    }
    from = to;
  }
}

/** The first run from there on that lacks the style. */
function endOfStyle(runs: readonly StyledRun[], from: number, style: Style): number {
  const url = runs[from]?.url ?? '';
  let end = from + 1;
  for (let run = runs[end]; run !== undefined && hasStyle(run, style, url); run = runs[end]) end += 1;
  return end;
}

export interface ListItem {
  indent: string;
  /** Such as `•` or `3.`. */
  marker: string;
}

interface OpenItem {
  indent: number;
  /** Marker of the next item; null where this depth cannot be shown as a list. */
  next: string | null;
  /** A blank line followed: the list may continue, but nothing nests in this item any more. */
  ended: boolean;
}

const ITEM = /^( *)([•◦▪]|(?:0|[1-9]\d{0,8})\.) (?=\S)/;

/** Finds the lines to write as list items: the platform's own bullets and numbers must match the text. */
function createItems({ bullets, deepest }: Markup) {
  let open: OpenItem[] = [];

  function begins(marker: string, indent: number): boolean {
    const parent = open.at(-1);
    const isNested = parent && parent.next !== null && !parent.ended && indent >= parent.indent + 2;
    if (indent > 0 && !isNested) return false;
    return /\d/.test(marker) || marker === bullets[Math.min(open.length, bullets.length - 1)];
  }

  return {
    /** The line as an item; null if it must be written as text. */
    take(line: string): ListItem | null {
      if (line.trim() === '') {
        open = open.filter((each) => each.indent === 0).map((each) => ({ ...each, ended: true }));
        return null;
      }
      const [, spaces = '', marker] = ITEM.exec(line) ?? [];
      if (marker === undefined) {
        const indent = line.length - line.trimStart().length;
        open = open.filter((each) => each.indent < indent);
        return null;
      }
      const indent = spaces.length;
      open = open.filter((each) => each.indent <= indent);
      const sibling = open.at(-1)?.indent === indent ? open.pop() : undefined;
      const fits = sibling === undefined ? begins(marker, indent) : marker === sibling.next;
      const isItem = fits && open.length < deepest;
      const next = /\d/.test(marker) ? `${Number.parseInt(marker, 10) + 1}.` : marker;
      open.push({ indent, next: isItem ? next : null, ended: false });
      return isItem ? { indent: spaces, marker } : null;
    },
    /** Ends every list, after a block that is not text. */
    end(): void {
      open = [];
    },
  };
}

export interface Markup {
  /** Bullets drawn by depth, the last for all deeper levels; lists deeper than `deepest` become text. */
  bullets: readonly string[];
  deepest: number;
  fence(code: string, language: string): string;
  /** `item`: the list item's marker, if the line is one. */
  line(runs: readonly StyledRun[], item: ListItem | null): string;
  quote(runs: readonly StyledRun[]): string;
}

export function renderLines(part: Part, markup: Markup): string {
  const items = createItems(markup);
  const written = blocksOf(part).map((block) => {
    if (block.kind === 'line' && !block.quoted)
      return markup.line(block.runs, items.take(startOf(block.runs)));
    items.end();
    return block.kind === 'pre' ? markup.fence(block.text, block.language) : markup.quote(block.runs);
  });
  return written.join('\n');
}
