/** One line in Discord's markup. */
import { withSignsEncoded } from './address.js';
import { fitted } from './discord-runs.js';
import { codeSpan, escaped, frontEscaped, GAP } from './discord-words.js';
import type { Item } from './items.js';
import { nest } from './nest.js';
import { isPlain, type Run, textOf, withoutFront } from './runs.js';

const SIGNS = { bold: '**', italic: '*', strike: '~~' };

export function discordLine(line: readonly Run[], item: Item | null, mayLink: boolean): string {
  const front = item === null ? '' : `${item.indent}${item.marker.replace(/[•◦▪]/, '-')} `;
  const words = isPlain(line) ? textOf(line) : '';
  // The short way for most lines.
  if (words !== '' && !words.includes('://')) return front + frontEscaped(escaped(words.slice(front.length)));
  let written = front;
  let atFront = true;
  /** What the last sign did, if no text came behind it. */
  let last: 'closed stars' | 'opened italic' | null = null;
  nest(fitted(withoutFront(line, front.length), mayLink), {
    open(style) {
      // `**a***b*` and `***a** b*` can be read in two ways.
      const clashes = last === 'closed stars' ? style === 'bold' || style === 'italic' : style === 'bold';
      if (last !== null && clashes) written += GAP;
      written += style === 'link' ? '[' : SIGNS[style];
      last = style === 'italic' ? 'opened italic' : null;
    },
    close(style, { url }) {
      written += style === 'link' ? `](<${withSignsEncoded(url)}>)` : SIGNS[style];
      last = style === 'bold' || style === 'italic' ? 'closed stars' : null;
    },
    text(run) {
      written += shown(run, atFront);
      if (run.kind !== 'space') atFront = false;
      last = null;
    },
  });
  return written;
}

function shown(run: Run, atFront: boolean): string {
  if (run.kind === 'code') return codeSpan(run.text);
  if (run.kind !== 'text') return run.text;
  const words = escaped(run.text, run.styles.includes('link'));
  return atFront ? frontEscaped(words) : words;
}
