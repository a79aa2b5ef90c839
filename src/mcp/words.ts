/** What a server wrote, as far as people and models may see it: no sign in it steers a terminal or hides. Pure. */
import { cutAt } from '../core/cut.js';

/** Control and format characters, and what turns the writing; ends of lines, tabs and the joiners of scripts stay. */
const UNSEEN = /(?![\n\t\u200c\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Co}\p{Cn}]/gu;

export function plainText(text: string): string {
  return text.replace(/\r\n?/g, '\n').replace(UNSEEN, '');
}

/** For a log or a sentence: one line, as long as can be read. */
export function oneLine(text: string, most = 300): string {
  const whole = plainText(cutAt(text, most * 4))
    .replace(/\s+/g, ' ')
    .trim();
  return whole.length <= most ? whole : `${cutAt(whole, most)}…`;
}
