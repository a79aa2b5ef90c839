/**
 * The headings of level 1 and 2 in a Markdown text, and the code fences left open in it. Works on UTF-8 bytes
 * as a string of one character each (`latin1`), so that every offset is a byte and nothing is decoded twice.
 * It looks only at lines that could matter: a file of megabytes costs milliseconds.
 */

export interface Heading {
  /** Offsets of its first character and of the first one after its line end. */
  start: number;
  bodyStart: number;
  title: string;
}

export interface OpenFence {
  /** Where it ceases to count: the heading that breaks it off, or the end. */
  at: number;
  /** The line that would have closed it. */
  closer: string;
}

export interface Headings {
  headings: Heading[];
  openFences: OpenFence[];
}

/** The beginning of `## x`, a line of `=` or `-` that may underline a heading, a code fence (also in a list item). */
const CANDIDATE =
  /^ {0,3}(?:(?<hashes>#{1,2})(?=[ \t\r\n]|$)|(?:=+|-+)[ \t]*$|(?<bullets>(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*)(?<fence>`{3,}|~{3,}))/;

/** What a paragraph cannot go on over: any heading, or a thematic break. */
const BREAK = /^ {0,3}(?:#{1,6}(?:[ \t]|$)|([-*_])[ \t]*(?:\1[ \t]*){2,}$)/;

/** What opens a quotation or a list item: a line of `-` below does not make it a heading. */
const CONTAINER = /^ {0,3}(?:>|(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$))/;

/**
 * A fence hides the headings in it. One that is never closed would hide all the rest; where `breaksOpenFence`
 * is given, the next line that matches it ends such a fence and counts as a heading.
 */
export function findHeadings(source: string, breaksOpenFence: RegExp | null): Headings {
  const headings: Heading[] = [];
  const openFences: OpenFence[] = [];
  const candidate = new RegExp(CANDIDATE.source, 'gm');
  const breaker = breaksOpenFence === null ? null : new RegExp(breaksOpenFence.source, 'gim');
  /** A fence of this length and more was looked for to the end and never closed. */
  const neverClosed: Record<string, number> = {};
  /** No paragraph reaches back over this. */
  let floor = 0;
  /** Up to here it is the text of a list item or quotation that goes on; so is what follows without a break. */
  let lazyUntil = -1;

  for (let match = candidate.exec(source); match !== null; match = candidate.exec(source)) {
    const { hashes, bullets, fence } = match.groups ?? {};
    const line = source.slice(match.index, lineEnd(source, match.index));
    const after = skipLineEnd(source, match.index + line.length);
    if (fence !== undefined) {
      // Backticks with another backtick behind them on the line are code within a sentence.
      if (fence.startsWith('`') && line.includes('`', match[0].length)) continue;
      candidate.lastIndex = floor = bullets ? endOfListFence(after, line, fence) : endOfFence(after, fence);
    } else if (hashes !== undefined) {
      headings.push({ start: match.index, bodyStart: after, title: atxTitle(line) });
      floor = after;
    } else {
      const start = paragraphBefore(source, floor, lazyUntil, match.index);
      if (start === 'lazy' && !BREAK.test(line)) lazyUntil = after;
      if (start === null || start === 'lazy') continue;
      const title = trimBlanks(source.slice(start, match.index).replace(/[ \t]*[\r\n]+[ \t]*/g, ' '));
      headings.push({ start, bodyStart: after, title });
      floor = after;
    }
  }
  return { headings, openFences };

  function endOfFence(from: number, fence: string): number {
    const mark = fence.charAt(0);
    if (fence.length < (neverClosed[mark] ?? Infinity)) {
      const closing = new RegExp(`^ {0,3}${mark}{${fence.length},}[ \\t]*$`, 'gm');
      closing.lastIndex = from;
      const closed = closing.exec(source);
      if (closed !== null) return skipLineEnd(source, closed.index + closed[0].length);
      neverClosed[mark] = fence.length;
    }
    if (breaker !== null) breaker.lastIndex = from;
    const at = breaker?.exec(source)?.index ?? source.length;
    openFences.push({ at, closer: fence });
    return at;
  }

  /** A fence in a list item ends with the item, at the latest: at the first text that stands further left. */
  function endOfListFence(from: number, line: string, fence: string): number {
    const column = line.indexOf(fence);
    const indent = ' '.repeat(column);
    const closing = new RegExp(`^ {0,${column + 3}}${fence.charAt(0)}{${fence.length},}[ \\t]*$`);
    for (let at = from; at < source.length; ) {
      const text = source.slice(at, lineEnd(source, at));
      const next = skipLineEnd(source, at + text.length);
      const blank = /^[ \t]*$/.test(text);
      if (!blank && !text.startsWith(indent) && !text.startsWith('\t')) return at;
      if (closing.test(text)) return next;
      at = next;
    }
    openFences.push({ at: source.length, closer: indent + fence });
    return source.length;
  }
}

/** Whether nothing but headings and blank lines stands in a piece that holds no heading of level 1 or 2. */
export function isBlank(piece: string): boolean {
  return !/[^ \t\r\n]/.test(piece.replace(/^ {0,3}#{3,6}(?=[ \t\r\n]|$)[^\r\n]*/gm, ''));
}

function atxTitle(line: string): string {
  return trimBlanks(line.replace(/^ *#+/, '').replace(/(^|[ \t])#+[ \t]*$/, ''));
}

/** Not `trim`: a byte that looks like a no-break space is the end of another character. */
function trimBlanks(text: string): string {
  return text.replace(/^[ \t]+|[ \t]+$/g, '');
}

/** Where the paragraph begins whose last line ends right before `at`; null when none does, or none of its own. */
function paragraphBefore(
  source: string,
  floor: number,
  lazyUntil: number,
  at: number,
): number | 'lazy' | null {
  const starts: number[] = [];
  for (let end = at; end > floor; ) {
    if (end === lazyUntil) return 'lazy';
    const start = lineStartBefore(source, floor, end);
    const line = source.slice(start, end).replace(/[\r\n]+$/, '');
    if (/^[ \t]*$/.test(line) || BREAK.test(line)) break;
    if (CONTAINER.test(line)) return 'lazy';
    starts.push(start);
    end = start;
  }
  // Indented lines at its beginning are code, not text.
  return starts.reverse().find((start) => !/^(?: {4}| {0,3}\t)/.test(source.slice(start, start + 4))) ?? null;
}

function lineStartBefore(source: string, floor: number, end: number): number {
  let at = end - 1;
  if (at > floor && source[at] === '\n' && source[at - 1] === '\r') at--;
  while (at > floor && source[at - 1] !== '\n' && source[at - 1] !== '\r') at--;
  return at;
}

function lineEnd(source: string, from: number): number {
  let at = from;
  while (at < source.length && source[at] !== '\n' && source[at] !== '\r') at++;
  return at;
}

function skipLineEnd(source: string, at: number): number {
  if (source[at] === '\r' && source[at + 1] === '\n') return at + 2;
  return source[at] === '\n' || source[at] === '\r' ? at + 1 : at;
}
