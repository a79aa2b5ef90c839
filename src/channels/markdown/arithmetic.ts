/** `2*3*4`: CommonMark would take the stars for emphasis, and what is left is another number. Pure. */
import type { StateInline } from 'markdown-it';

const STARS = /\*{1,2}(?=\d)/y;

/** A rule for the inside of paragraphs: one star or two between digits are text. */
export function readTimes(state: StateInline, silent: boolean): boolean {
  const { src, pos } = state;
  if (src[pos] !== '*' || !/\d/.test(src[pos - 1] ?? '')) return false;
  STARS.lastIndex = pos;
  const stars = STARS.exec(src)?.[0];
  if (stars === undefined) return false;
  if (!silent) state.pending += stars;
  state.pos += stars.length;
  return true;
}
