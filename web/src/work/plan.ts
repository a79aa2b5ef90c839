/** A plan as text: its steps, the one character that ticks one off, and the line ends that a field takes away. Pure. */

export interface Step {
  kind: 'step';
  /** Of the character between the brackets. */
  at: number;
  isDone: boolean;
  text: string;
  /** How many lists it stands in. */
  depth: number;
}

export interface PlanHeading {
  kind: 'heading';
  at: number;
  text: string;
}

const STEP = /^([ \t]*(?:>[ \t]?)*[ \t]*)(?:[-*+]|\d{1,9}[.)])[ \t]+\[([ xX])\](?:[ \t]+(.*))?$/;
const ITEM = /^([ \t]*(?:>[ \t]?)*[ \t]*)(?:[-*+]|\d{1,9}[.)])[ \t]/;
const HEADING = /^ {0,3}#{1,6}[ \t]+(.*?)[ \t#]*$/;
const FENCE = /^[ \t]*(?:>[ \t]?)*[ \t]*(`{3,}|~{3,})/;
const TAB = 4;

/** Steps and headings, in order. Code is no plan. */
export function planIn(source: string): (Step | PlanHeading)[] {
  const found: (Step | PlanHeading)[] = [];
  let fence: string | null = null;
  let lists: number[] = [];
  for (const { line, start } of linesIn(source)) {
    const [, mark] = FENCE.exec(line) ?? [];
    if (fence !== null) {
      if (mark?.startsWith(fence) && line.trim().replace(/^[> ]+/, '') === mark) fence = null;
      continue;
    }
    if (mark !== undefined) {
      fence = mark;
      continue;
    }
    const heading = HEADING.exec(line);
    if (heading) {
      lists = [];
      found.push({ kind: 'heading', at: start, text: wordsOf(heading[1] ?? '') });
      continue;
    }
    const item = ITEM.exec(line);
    if (item === null) continue;
    const indent = widthOf(item[1] ?? '');
    lists = lists.filter((outer) => outer < indent);
    const step = STEP.exec(line);
    if (step) {
      const at = start + line.indexOf('[', item[0].length - 1) + 1;
      const text = wordsOf(step[3] ?? '');
      found.push({ kind: 'step', at, isDone: step[2] !== ' ', text, depth: lists.length });
    }
    lists.push(indent);
  }
  return found;
}

/** With this step ticked off, or not any more: nothing else changes. */
export function ticked(source: string, { at, isDone }: Step): string {
  return `${source.slice(0, at)}${isDone ? ' ' : 'x'}${source.slice(at + 1)}`;
}

/** As a field shows it: each line end is one. */
export function asTyped(source: string): string {
  return source.replace(/\r\n?/g, '\n');
}

/** The typed text with the line ends of the one before: those of unchanged lines stay, new lines have the usual one. */
export function withLineEnds(before: string, typed: string): string {
  if (typed === asTyped(before)) return before;
  if (!before.includes('\r')) return typed;
  const old = linesIn(before);
  const now = typed.split('\n');
  let top = 0;
  while (top < old.length && top < now.length && old[top]?.line === now[top]) top++;
  let bottom = 0;
  const most = Math.min(old.length, now.length) - top;
  while (bottom < most && old.at(-1 - bottom)?.line === now.at(-1 - bottom)) bottom++;
  const usual = usualOf(old.map(({ end }) => end));
  const ends = now.map((_, n) => {
    if (n === now.length - 1) return '';
    const line = n < top ? old[n] : n >= now.length - bottom ? old[old.length - now.length + n] : undefined;
    // Before a new line end, a lone return would become half of one.
    return line === undefined || line.end === '' || line.end === '\r' ? usual : line.end;
  });
  return now.map((line, n) => line + ends[n]).join('');
}

function linesIn(source: string): { line: string; start: number; end: string }[] {
  const pieces = source.split(/(\r\n|\n|\r)/);
  const lines: { line: string; start: number; end: string }[] = [];
  let start = 0;
  for (let n = 0; n < pieces.length; n += 2) {
    const [line = '', end = ''] = [pieces[n], pieces[n + 1]];
    lines.push({ line, start, end });
    start += line.length + end.length;
  }
  return lines;
}

function usualOf(ends: readonly string[]): string {
  const windows = ends.filter((end) => end === '\r\n').length;
  return windows * 2 >= ends.filter((end) => end !== '').length ? '\r\n' : '\n';
}

function widthOf(indent: string): number {
  return [...indent].reduce((width, char) => (char === '\t' ? width + TAB - (width % TAB) : width + 1), 0);
}

/** Without comments (a plan's steps carry their ids in them) and marks. */
function wordsOf(text: string): string {
  return text
    .replace(/<!--.*?-->/g, '')
    .replace(/\*\*|__|`|~~/g, '')
    .trim();
}
