/** A part in spans, each with the same marks throughout: what every rendering begins with. */
import type { Mark, Part } from '../../core/channel.js';

export interface Span {
  start: number;
  end: number;
  /** The outer ones first. */
  marks: readonly Mark[];
}

/** Of the whole text, in order, none empty. Marks may come in any order, cross, and reach beyond the text. */
export function spansOf({ text, marks }: Part): Span[] {
  const waiting = marks
    .filter((mark) => mark.length > 0)
    .sort((one, other) => one.offset - other.offset || other.length - one.length);
  const edges = new Uint32Array(2 * waiting.length + 2);
  edges[0] = text.length;
  for (const [index, mark] of waiting.entries()) {
    edges[2 * index + 2] = Math.min(mark.offset, text.length);
    edges[2 * index + 3] = Math.min(endOf(mark), text.length);
  }
  edges.sort();

  const spans: Span[] = [];
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
