/**
 * A part in WhatsApp's markup. Pure. WhatsApp has no escapes, no links with labels, no lists in lists and no
 * languages of code: a link is `label (address)`, marks that it could not show where they are (within a word) are left
 * out, and characters of the text that it would take for markup are put between U+2060, which is invisible.
 */
import type { Part } from '../../core/channel.js';
import { blocksOf } from './blocks.js';
import { createItems, type Item } from './items.js';
import { nest } from './nest.js';
import { isPlain, type Run, type Style, startOf, textOf, withoutStart } from './runs.js';
import { JOINER, type Piece, withMarkersShielded } from './whatsapp-escape.js';
import { MARKERS, supported } from './whatsapp-runs.js';

/**
 * Wider tables are written row by row. A bubble on a phone holds some 30 letters of fixed width; where the lines of a
 * table are broken, its columns cannot be made out.
 */
export const TABLE_WIDTH = 30;

export function whatsappText(part: Part): string {
  const items = createItems(['•'], 1);
  const written: string[] = [];
  for (const block of blocksOf(part)) {
    if (block.kind === 'pre') {
      items.end();
      written.push(fence(block.text));
    } else if (block.quoted) {
      items.end();
      // An empty line of a quote would show the `>`.
      written.push(textOf(block.runs).trim() === '' ? '' : `> ${whatsappLine(block.runs, null)}`);
    } else {
      written.push(whatsappLine(block.runs, items.take(startOf(block.runs))));
    }
  }
  return written.join('\n');
}

/** Without line ends beside its backticks: they would be seen as empty lines. */
function fence(code: string): string {
  return code.trim() === '' ? code : fenced(code, /`(?=``)/g);
}

/** No more backticks than are harmless follow each other, and none stands at either end. */
function fenced(code: string, tooMany: RegExp): string {
  const apart = code.replace(tooMany, `\`${JOINER}`);
  return `\`\`\`${apart.replace(/^`/, `${JOINER}\``).replace(/`$/, `\`${JOINER}`)}\`\`\``;
}

/** One line. */
function whatsappLine(line: readonly Run[], item: Item | null): string {
  const start = item === null ? '' : `${item.marker.replace('•', '-')} `;
  const words = isPlain(line) ? textOf(line).slice(start.length) : '';
  // The short way for most lines.
  const isShort = words !== '' && !/[*_~`]|:\/\//.test(words);
  const written = isShort
    ? words
    : withMarkersShielded(piecesOf(supported(withoutStart(line, start.length))));
  return item === null ? startShielded(written) : start + written;
}

function piecesOf(runs: readonly Run[]): Piece[] {
  const pieces: Piece[] = [];
  const marker = (style: Style) => {
    if (style !== 'link') pieces.push({ kind: 'marker', text: MARKERS[style] });
  };
  nest(runs, {
    open: marker,
    close: marker,
    text: ({ kind, text }) => {
      if (kind === 'code') pieces.push({ kind: 'fixed', text: codeSpan(text) });
      else pieces.push({ kind: kind === 'raw' ? 'fixed' : 'words', text });
    },
  });
  return pieces;
}

/** With three backticks where the code has one of its own. */
function codeSpan(code: string): string {
  return code.includes('`') ? fenced(code, /`(?=`)/g) : `\`${code}\``;
}

/** What would begin a list or a quote does not, after an invisible character. */
function startShielded(line: string): string {
  return line.replace(/^(\s*)(?=[-*] |>|\d+\. )/, `$1${JOINER}`);
}
