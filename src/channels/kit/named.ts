/** Who speaks, where a platform has no face of its own for a persona: the name in bold before the text. Pure. */
import type { Face, Part } from '../../core/channel.js';

/** Between the name and the text; `compose` was asked to keep room for both. */
const BREAK = '\n';

/** The part as it is sent: with the name before it where it leads and a face is to be shown. */
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
