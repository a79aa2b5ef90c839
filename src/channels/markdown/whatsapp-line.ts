/** One line in WhatsApp's markup. */
import type { Item } from './items.js';
import { nest } from './nest.js';
import { isPlain, type Run, type Style, textOf, withoutFront } from './runs.js';
import { fitted, SIGNS } from './whatsapp-runs.js';
import { JOINER, type Piece, withSignsHeld } from './whatsapp-signs.js';

export function whatsappLine(line: readonly Run[], item: Item | null): string {
  const front = item === null ? '' : `${item.marker.replace('•', '-')} `;
  const words = isPlain(line) ? textOf(line).slice(front.length) : '';
  // The short way for most lines.
  const isShort = words !== '' && !/[*_~`]|:\/\//.test(words);
  const written = isShort ? words : withSignsHeld(piecesOf(fitted(withoutFront(line, front.length))));
  return item === null ? frontHeld(written) : front + written;
}

function piecesOf(runs: readonly Run[]): Piece[] {
  const pieces: Piece[] = [];
  const sign = (style: Style) => {
    if (style !== 'link') pieces.push({ kind: 'sign', text: SIGNS[style] });
  };
  nest(runs, {
    open: sign,
    close: sign,
    text: ({ kind, text }) => {
      if (kind === 'code') pieces.push({ kind: 'fixed', text: codeSpan(text) });
      else pieces.push({ kind: kind === 'raw' ? 'fixed' : 'words', text });
    },
  });
  return pieces;
}

/** With three signs where the code has one of its own. */
function codeSpan(code: string): string {
  if (!code.includes('`')) return `\`${code}\``;
  const held = code
    .replace(/`(?=`)/g, `\`${JOINER}`)
    .replace(/^`/, `${JOINER}\``)
    .replace(/`$/, `\`${JOINER}`);
  return `\`\`\`${held}\`\`\``;
}

/** What would begin a list or a quote does not, behind what nobody sees. */
function frontHeld(line: string): string {
  return line.replace(/^(\s*)(?=[-*] |>|\d+\. )/, `$1${JOINER}`);
}
