/**
 * The headings of level 1 and 2 in a Markdown text, and the code fences left open in it. Works on UTF-8 bytes as a
 * string of one character each (see `byte-text.ts`), so that every offset is a byte and nothing is decoded twice.
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

const HASHES = /^ {0,3}#{1,2}(?=[ \t]|$)/;
const UNDERLINE = /^ {0,3}(?:=+|-+)[ \t]*$/;
/** Also in a list item. */
const FENCE = /^ {0,3}(?<bullets>(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*)(?<fence>`{3,}|~{3,})/;
/** What a paragraph cannot go on over: a blank line, any heading, or a thematic break. */
const BREAK = /^(?:[ \t]*$| {0,3}(?:#{1,6}(?:[ \t]|$)|([-*_])[ \t]*(?:\1[ \t]*){2,}$))/;
/** What opens a quotation or a list item: the text after it belongs to that up to the next break. */
const CONTAINER = /^ {0,3}(?:>|(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$))/;
/** Indented lines are code where no paragraph goes on. */
const CODE = /^(?: {4}| {0,3}\t)/;
/** Begins like none of all these. */
const PLAIN = /^[^\s#=`~*+_>\d-]/;

/**
 * A fence hides the headings in it. One that is never closed would hide all the rest; where `breaksOpenFence`
 * is given, the next line that matches it ends such a fence and counts as a heading.
 */
export function findHeadings(source: string, breaksOpenFence: RegExp | null): Headings {
  const headings: Heading[] = [];
  const openFences: OpenFence[] = [];
  const lineAt = lineReader(source);
  /** A fence of this length and more was looked for to the end and never closed. */
  const neverClosed: Record<string, number> = {};
  /** Where the paragraph began that a line below could make a heading. */
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
    if (fence !== undefined && !isCodeInSentence(text, fence)) {
      at = bullets ? endOfListFence(next, text, fence) : endOfFence(next, fence);
    } else if (HASHES.test(text)) {
      headings.push({ start, bodyStart: next, title: hashTitle(text) });
    } else if (paragraph !== null && UNDERLINE.test(text)) {
      const title = source.slice(paragraph, start).replace(/[ \t]*[\r\n]+[ \t]*/g, ' ');
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

  /** A fence in a list item ends with the item, at the latest: at the first text that stands further left. */
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

/** Whether nothing but headings and blank lines stands in a piece that holds no heading of level 1 or 2. */
export function isBlank(piece: string): boolean {
  return !/[^ \t\r\n]/.test(piece.replace(/^ {0,3}#{3,6}(?=[ \t\r\n]|$)[^\r\n]*/gm, ''));
}

/** The line that begins at an offset, without its line end, and where the next begins. */
function lineReader(source: string): (start: number) => { text: string; next: number } {
  const line = /([^\r\n]*)(?:\r\n|\n|\r)?/y;
  return (start) => {
    line.lastIndex = start;
    const text = line.exec(source)?.[1] ?? '';
    return { text, next: line.lastIndex };
  };
}

/** Backticks with another backtick behind them on the line. */
function isCodeInSentence(line: string, fence: string): boolean {
  return fence.startsWith('`') && line.includes('`', line.indexOf(fence) + fence.length);
}

function hashTitle(line: string): string {
  return trimBlanks(line.replace(/^ *#+/, '').replace(/(^|[ \t])#+[ \t]*$/, ''));
}

/** Not `trim`: a byte that looks like a no-break space is the end of another character. */
function trimBlanks(text: string): string {
  return text.replace(/^[ \t]+|[ \t]+$/g, '');
}
