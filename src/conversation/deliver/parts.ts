/**
 * Within step 7 of the route: a text as the parts that its channel can show, and no more of them than people read and a
 * chat's budget carries: five hundred messages would keep a group waiting for half an hour. Of a longer text only the
 * beginning is sent, and that there is more is said. Only that beginning is composed, also each second while a reply is
 * shown; what is kept of a reply is shorter still (`turn/bounds.ts`). Pure.
 */
import type { Channel, Part } from '../../core/channel.js';
import { cutAt } from '../../core/cut.js';

/** Some twenty messages, where one takes four thousand. */
const MOST_CHARS = 64_000;
/** A text full of marks takes more messages than its length would need. */
const MOST_PARTS = 30;
/** The last paragraph or line is looked for within so many characters. */
const LOOK_BACK = 4_000;

const LONGER =
  '_(This is only the beginning: it is longer than I may send at once. Ask for the part you want.)_';

/** With `spare` characters kept free in each part. */
export function partsOf(channel: Pick<Channel, 'compose'>, markdown: string, spare: number): Part[] {
  const parts = channel.compose(isLong(markdown) ? beginningOf(markdown) : markdown, spare);
  if (!isLong(markdown) && parts.length <= MOST_PARTS) return parts;
  return [...parts.slice(0, MOST_PARTS), ...channel.compose(LONGER, spare)];
}

export function isLong({ length }: string): boolean {
  return length > MOST_CHARS;
}

/** Up to the end of a paragraph, else of a line, if there is one near the end. */
function beginningOf(markdown: string): string {
  const most = cutAt(markdown, MOST_CHARS);
  const tail = most.slice(-LOOK_BACK);
  const at = ['\n\n', '\n'].map((end) => tail.lastIndexOf(end)).find((found) => found >= 0);
  return at === undefined ? most : most.slice(0, most.length - tail.length + at);
}
