/** How many columns of a fixed-width font a text takes: two for wide letters and emoji, none for what combines. */
import { once } from './once.js';

const graphemes = once(() => new Intl.Segmenter(undefined, { granularity: 'grapheme' }));

const WIDE =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]/u;
const EMOJI = /^\p{Emoji_Presentation}|^\p{Extended_Pictographic}\ufe0f|^\p{Regional_Indicator}/u;
const NOTHING = /^[\p{Mark}\p{Format}\p{Control}]+$/u;
const ASCII = /^[\x20-\x7e]*$/;

export function width(text: string): number {
  if (ASCII.test(text)) return text.length;
  let columns = 0;
  for (const { segment } of graphemes().segment(text)) {
    if (!NOTHING.test(segment)) columns += WIDE.test(segment) || EMOJI.test(segment) ? 2 : 1;
  }
  return columns;
}
