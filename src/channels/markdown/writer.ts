/** Collects text and the marks on it, for `render.ts` and `inline.ts`. */
import type { Mark, Part } from '../../core/channel.js';

/** What a mark says, without where. */
type Style = Mark extends infer Each ? (Each extends Mark ? Omit<Each, 'offset' | 'length'> : never) : never;

export type Writer = ReturnType<typeof createWriter>;

export function createWriter() {
  const pieces: string[] = [];
  let length = 0;
  const marks: Mark[] = [];
  const depth = new Map<Mark['kind'], number>();

  return {
    length: () => length,
    write(text: string): void {
      pieces.push(text);
      length += text.length;
    },
    /** Marks from `start` to here. */
    mark(start: number, style: Style): void {
      const where = { offset: start, length: length - start };
      if (where.length > 0) marks.push(Object.assign(where, style));
    },
    /** Begins emphasis of a kind, or a link. */
    enter(kind: Mark['kind']): void {
      depth.set(kind, (depth.get(kind) ?? 0) + 1);
    },
    /** Ends it. True when it was the outermost of its kind: only that one is worth a mark. */
    leave(kind: Mark['kind']): boolean {
      const left = (depth.get(kind) ?? 1) - 1;
      depth.set(kind, left);
      return left === 0;
    },
    isInside: (kind: Mark['kind']) => (depth.get(kind) ?? 0) > 0,
    /** What was written since then, where a piece began. */
    since(start: number): string {
      let text = '';
      for (let at = pieces.length - 1; text.length < length - start; at -= 1)
        text = (pieces[at] ?? '') + text;
      return text;
    },
    done: (): Part => ({
      text: pieces.join(''),
      marks: marks.sort((one, other) => one.offset - other.offset || other.length - one.length),
    }),
  };
}
