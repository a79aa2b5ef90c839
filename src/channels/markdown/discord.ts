/**
 * A part in Discord's markup. Pure. What its reader sees is the part's text, save for U+200B where Discord has no
 * other way: between `@` and `everyone` or `here`, between backticks in code, and between signs of emphasis that
 * would run together.
 */
import type { Part } from '../../core/channel.js';
import { discordLine } from './discord-line.js';
import { GAP } from './discord-words.js';
import { createItems } from './items.js';
import { blocksOf } from './lines.js';
import { frontOf } from './runs.js';

/** Discord draws its bullets by depth, the same as ours. */
const BULLETS = ['•', '◦', '▪'];
const DEEPEST_LIST = 10;
const LANGUAGE = /^[a-z0-9_+.-]+$/i;

export function discordText(part: Part): string {
  const items = createItems(BULLETS, DEEPEST_LIST);
  // The label of a link goes on to the last `](` behind it, in code, too: with another one it would be a wrong one.
  const mayLink = !part.text.includes('](');
  const written: string[] = [];
  for (const block of blocksOf(part)) {
    if (block.kind === 'pre') {
      items.leave();
      written.push(fence(block.text, block.language));
    } else if (block.quoted) {
      items.leave();
      // Two spaces: with one, an empty line would end the quote and show its sign.
      written.push(`> ${discordLine(block.runs, null, mayLink) || ' '}`);
    } else {
      written.push(discordLine(block.runs, items.take(frontOf(block.runs)), mayLink));
    }
  }
  return written.join('\n');
}

/** As Discord counts it for its limit of 2,000: in code points of what is sent, markup included. */
export function discordLength(part: Part): number {
  const text = discordText(part);
  return text.length - (text.match(PAIRS)?.length ?? 0);
}

const PAIRS = /[\ud800-\udbff][\udc00-\udfff]/g;

/** Three backticks end a fence, whatever it began with; and nothing but backticks is none. */
function fence(code: string, language: string): string {
  if (code.trim() === '') return code;
  const named = LANGUAGE.test(language) ? language : '';
  const held = code.replace(/``(?=`)/g, `\`\`${GAP}`) + (/[^`\s]/.test(code) ? '' : GAP);
  return `\`\`\`${named}\n${held}\n\`\`\``;
}
