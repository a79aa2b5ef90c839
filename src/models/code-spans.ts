/** Code in a text with marks, as CommonMark reads it: what stands there is shown as it is, and means nothing. Pure. */

const FENCE = /(`{3,}|~{3,})([^\n]*)(\n?)/uy;
/** Also in a list or a quotation. */
const CLOSING = /^[ \t>]{0,20}(`{3,}|~{3,})[ \t]*$/gmu;
const TICKS_OR_BREAK = /`+|\n[ \t]*\n/gu;
/** Nobody marks code with more; each length is looked for once in a paragraph. */
const MOST_TICKS = 8;

export interface Fence {
  /** Whether its first line has ended. */
  isBegun: boolean;
  /** Where what is inside begins and ends. */
  from: number;
  to: number;
  /** Behind its last line, or the end of the text where it is not closed. */
  end: number;
}

/** `at`: where a line begins, but for blanks. null: no fence opens there. */
export function fenceAt(text: string, at: number): Fence | null {
  FENCE.lastIndex = at;
  const opening = FENCE.exec(text);
  if (opening === null) return null;
  const [, run = '', info = '', lineEnd] = opening;
  if (run.startsWith('`') && info.includes('`')) return null;
  const fence = { isBegun: lineEnd !== '', from: FENCE.lastIndex };
  CLOSING.lastIndex = fence.from;
  for (let line = CLOSING.exec(text); line !== null; line = CLOSING.exec(text)) {
    const [, marks = ''] = line;
    if (marks[0] === run[0] && marks.length >= run.length) {
      return { ...fence, to: line.index, end: CLOSING.lastIndex };
    }
  }
  return { ...fence, to: text.length, end: text.length };
}

/** Behind the inline code, or where it is not closed the marks, that begin at a place. */
export interface Ticks {
  end: number;
  /** Whether more text could close it. */
  mayClose: boolean;
}

export function createTicks(text: string): (at: number) => Ticks {
  /** By the length of the marks, up to where there are none that close. */
  const noneBefore = new Map<number, number>();
  return (at) => {
    TICKS_OR_BREAK.lastIndex = at;
    const { length } = TICKS_OR_BREAK.exec(text)?.[0] ?? '`';
    const after = at + length;
    const open = { end: after, mayClose: (noneBefore.get(length) ?? 0) >= text.length };
    if (length > MOST_TICKS || at < (noneBefore.get(length) ?? 0)) return open;
    TICKS_OR_BREAK.lastIndex = after;
    let match = TICKS_OR_BREAK.exec(text);
    while (match?.[0].startsWith('`')) {
      if (match[0].length === length) return { end: TICKS_OR_BREAK.lastIndex, mayClose: false };
      match = TICKS_OR_BREAK.exec(text);
    }
    noneBefore.set(length, match?.index ?? text.length);
    return { end: after, mayClose: match === null };
  };
}
