/** Text of files in a prompt. */
import { escaped } from './elements.js';

/** Puts it in a fence longer than any fence inside it, so that the text cannot end its own block, nor begin an element. */
export function fenced(text: string): string {
  const longest = Math.max(2, ...Array.from(text.matchAll(/`+/g), (run) => run[0].length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}text\n${escaped(text)}\n${fence}`;
}
