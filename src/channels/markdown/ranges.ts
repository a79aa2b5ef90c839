/** Stretches of a text that should stay in one piece. */
import type { Mark } from '../../core/channel.js';

export interface Range {
  start: number;
  end: number;
}

/** Where marks of these kinds are: in order, and of those inside each other the outermost. */
export function rangesOf(marks: Mark[], kinds: Mark['kind'][]): Range[] {
  const ranges: Range[] = [];
  for (const mark of marks) {
    const last = ranges.at(-1);
    if (kinds.includes(mark.kind) && mark.offset >= (last?.end ?? 0)) {
      ranges.push({ start: mark.offset, end: mark.offset + mark.length });
    }
  }
  return ranges;
}

/** The range that the character at `position` is in. */
export function rangeAt(ranges: Range[], position: number): Range | undefined {
  let low = 0;
  let high = ranges.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((ranges[middle]?.end ?? 0) <= position) low = middle + 1;
    else high = middle;
  }
  const range = ranges[low];
  return range !== undefined && range.start <= position ? range : undefined;
}

/** The range that a cut before `position` would break in two. */
export function rangeBrokenAt(ranges: Range[], position: number): Range | undefined {
  const range = rangeAt(ranges, position);
  return range !== undefined && range.start < position ? range : undefined;
}
