/** The speaker's name in bold before the text, where a platform cannot show another name and picture. Pure. */
import type { Face, Part } from '../../core/channel.js';

/** Between the name and the text; `compose` keeps room for both. */
const BREAK = '\n';

/** With the name before it, if it is the first part and it is to be seen who speaks. */
export function named(part: Part, { face, leads }: { face?: Face | undefined; leads?: boolean }): Part {
  if (face === undefined || !leads) return part;
  const { text, marks } = part;
  const before = text === '' ? face.name : face.name + BREAK;
  return {
    ...part,
    text: before + text,
    marks: [
      { kind: 'bold', offset: 0, length: face.name.length },
      ...marks.map((mark) => ({ ...mark, offset: mark.offset + before.length })),
    ],
  };
}
