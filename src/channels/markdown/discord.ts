/**
 * A part in Discord's markup. Pure. What its reader sees is the part's text, save for U+200B where Discord has no
 * other way: between `@` and `everyone` or `here`, between backticks in code, and between markers of emphasis
 * that would run together.
 */
import type { Part } from '../../core/channel.js';
import { withMarkupEncoded } from './address.js';
import { blocksOf } from './blocks.js';
import { codeSpan, escaped, GAP, startEscaped } from './discord-escape.js';
import { supported } from './discord-runs.js';
import { createItems, type Item } from './items.js';
import { nest } from './nest.js';
import { isPlain, type Run, startOf, textOf, withoutStart } from './runs.js';

/** Discord draws its bullets by depth, the same as ours. */
const BULLETS = ['•', '◦', '▪'];
const DEEPEST_LIST = 10;
const LANGUAGE = /^[a-z0-9_+.-]+$/i;

/**
 * Wider tables are written row by row. A phone shows so many letters of fixed width in a block of code before it breaks the
 * line, and then columns cannot be made out.
 */
export const TABLE_WIDTH = 56;

export function discordText(part: Part): string {
  const items = createItems(BULLETS, DEEPEST_LIST);
  // For Discord a link's label goes on to the last `](` after it, in code, too: with another one it would be wrong.
  const mayLink = !part.text.includes('](');
  const written: string[] = [];
  for (const block of blocksOf(part)) {
    if (block.kind === 'pre') {
      items.end();
      written.push(fence(block.text, block.language));
    } else if (block.quoted) {
      items.end();
      // A second space for an empty line: without it the line would end the quote and show the `>`.
      written.push(`> ${discordLine(block.runs, null, mayLink) || ' '}`);
    } else {
      written.push(discordLine(block.runs, items.take(startOf(block.runs)), mayLink));
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
  const separated = code.replace(/``(?=`)/g, `\`\`${GAP}`) + (/[^`\s]/.test(code) ? '' : GAP);
  return `\`\`\`${named}\n${separated}\n\`\`\``;
}

const MARKERS = { bold: '**', italic: '*', strike: '~~' };

/** One line. */
function discordLine(line: readonly Run[], item: Item | null, mayLink: boolean): string {
  const start = item === null ? '' : `${item.indent}${item.marker.replace(/[•◦▪]/, '-')} `;
  const words = isPlain(line) ? textOf(line) : '';
  // The short way for most lines.
  if (words !== '' && !words.includes('://')) return start + startEscaped(escaped(words.slice(start.length)));
  let written = start;
  let atStart = true;
  /** What the last marker did, if no text came after it. */
  let last: 'closed stars' | 'opened italic' | null = null;
  nest(supported(withoutStart(line, start.length), mayLink), {
    open(style) {
      // `**a***b*` and `***a** b*` can be read in two ways.
      const clashes = last === 'closed stars' ? style === 'bold' || style === 'italic' : style === 'bold';
      if (last !== null && clashes) written += GAP;
      written += style === 'link' ? '[' : MARKERS[style];
      last = style === 'italic' ? 'opened italic' : null;
    },
    close(style, { url }) {
      written += style === 'link' ? `](<${withMarkupEncoded(url)}>)` : MARKERS[style];
      last = style === 'bold' || style === 'italic' ? 'closed stars' : null;
    },
    text(run) {
      written += shown(run, atStart);
      if (run.kind !== 'space') atStart = false;
      last = null;
    },
  });
  return written;
}

function shown(run: Run, atStart: boolean): string {
  if (run.kind === 'code') return codeSpan(run.text);
  if (run.kind !== 'text') return run.text;
  const words = escaped(run.text, run.styles.includes('link'));
  return atStart ? startEscaped(words) : words;
}
