/**
 * A part in WhatsApp's markup. Pure. WhatsApp has no escapes, no links with labels, no lists in lists and no
 * languages of code: a link is `label (address)`, marks that it could not open where they are (within a word) are
 * left out, and around signs in the text that it would take for its own stands U+2060, which nobody sees.
 */
import type { Part } from '../../core/channel.js';
import { createItems } from './items.js';
import { blocksOf } from './lines.js';
import { frontOf, textOf } from './runs.js';
import { whatsappLine } from './whatsapp-line.js';
import { JOINER } from './whatsapp-signs.js';

/**
 * Wider tables are told row by row. A telephone's bubble holds some 30 letters of fixed width; where the lines of a
 * table are broken, nobody can tell its columns.
 */
export const TABLE_WIDTH = 30;

export function whatsappText(part: Part): string {
  const items = createItems(['•'], 1);
  const written: string[] = [];
  for (const block of blocksOf(part)) {
    if (block.kind === 'pre') {
      items.leave();
      written.push(fence(block.text));
    } else if (block.quoted) {
      items.leave();
      // An empty line of a quote would show its sign.
      written.push(textOf(block.runs).trim() === '' ? '' : `> ${whatsappLine(block.runs, null)}`);
    } else {
      written.push(whatsappLine(block.runs, items.take(frontOf(block.runs))));
    }
  }
  return written.join('\n');
}

/** Without line ends at its signs: they would be seen as empty lines. */
function fence(code: string): string {
  if (code.trim() === '') return code;
  const held = code
    .replace(/`(?=``)/g, `\`${JOINER}`)
    .replace(/^`/, `${JOINER}\``)
    .replace(/`$/, `\`${JOINER}`);
  return `\`\`\`${held}\`\`\``;
}
