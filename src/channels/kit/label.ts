/** The label of a button: one line, cut between what people see as characters. Pure. */
import { once } from '../../core/once.js';

const characters = once(() => new Intl.Segmenter(undefined, { granularity: 'grapheme' }));

/** At most so many UTF-16 units. */
export function label(text: string, most: number): string {
  const line = text.replace(/[\s\p{Cc}]+/gu, ' ').trim();
  if (line.length <= most) return line;
  let cut = '';
  for (const { segment } of characters().segment(line)) {
    if (cut.length + segment.length >= most) break;
    cut += segment;
  }
  return `${cut.trimEnd()}…`;
}
