/**
 * Finds headings of level 1 and 2 and unclosed code fences in Markdown. Works on UTF-8 bytes as a string with one
 * character per byte (see `byte-text.ts`), so every offset is a byte offset and nothing is decoded twice.
 */

export interface Heading {
  /** Offset of its first character, and of the first one after its line end. */
  start: number;
  bodyStart: number;
  title: string;
}

export interface OpenFence {
  /** Where it ends: at the heading that interrupts it, or at the end of the text. */
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
/** Also within a list item. */
const FENCE = /^ {0,3}(?<bullets>(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*)(?<fence>`{3,}|~{3,})/;
/** What ends a paragraph: a blank line, a heading, or a thematic break. */
const BREAK = /^(?:[ \t]*$| {0,3}(?:#{1,6}(?:[ \t]|$)|([-*_])[ \t]*(?:\1[ \t]*){2,}$))/;
/** What opens a quotation or a list item: the following text belongs to it up to the next break. */
const CONTAINER = /^ {0,3}(?:>|(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$))/;
/** Indented lines are code unless they continue a paragraph. */
const CODE = /^(?: {4}| {0,3}\t)/;
/** Cannot start any of the above. */
const PLAIN = /^[^\s#=`~*+_>\d-]/;

/**
 * A fence hides the headings in it, and an unclosed one would hide all the rest. If `breaksOpenFence` is given, the
 * next line that matches it ends such a fence and counts as a heading.
 */
export function findHeadings(source: string, breaksOpenFence: RegExp | null): Headings {
  const headings: Heading[] = [];
  const openFences: OpenFence[] = [];
  const lineAt = lineReader(source);
  /** Lengths of fences for which no closing line was found up to the end. */
  const neverClosed: Record<string, number> = {};
  /** The start of a paragraph that an underline could turn into a heading. */
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

  /** A fence in a list item ends with the item at the latest: at the first text with less indentation. */
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

/** Whether a piece without headings of level 1 or 2 contains only lower headings and blank lines. */
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

/** Inline code: backticks followed by another backtick on the same line. */
function isCodeInSentence(line: string, fence: string): boolean {
  return fence.startsWith('`') && line.includes('`', line.indexOf(fence) + fence.length);
}

function hashTitle(line: string): string {
  return trimBlanks(line.replace(/^ *#+/, '').replace(/(^|[ \t])#+[ \t]*$/, ''));
}

/** Not `trim`: a byte that looks like a no-break space is part of another character. */
function trimBlanks(text: string): string {
  return text.replace(/^[ \t]+|[ \t]+$/g, '');
}
