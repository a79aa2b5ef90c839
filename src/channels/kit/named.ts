/** The speaker's name in bold before the text, where a platform cannot show another name and picture. Pure. */
import type { Appearance, Part } from '../../core/channel.js';

/** Between the name and the text; `compose` keeps room for both. */
const BREAK = '\n';

/** With the name before it, if it is the first part and it is to be seen which of several speaks. */
export function named(
  part: Part,
  { appearance, leads }: { appearance?: Appearance | undefined; leads?: boolean },
): Part {
  if (appearance === undefined || appearance.alone || !leads) return part;
  const { text, marks } = part;
  const before = text === '' ? appearance.name : appearance.name + BREAK;
  return {
    ...part,
    text: before + text,
    marks: [
      { kind: 'bold', offset: 0, length: appearance.name.length },
      ...marks.map((mark) => ({ ...mark, offset: mark.offset + before.length })),
    ],
  };
}
