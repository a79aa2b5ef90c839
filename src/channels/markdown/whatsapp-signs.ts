/** Signs in a text that WhatsApp would take for markup, kept from it. */

/**
 * WORD JOINER, which nobody sees. WhatsApp has no escapes, and says nowhere which letters may stand beside a sign;
 * with this one before it and behind it, none stands at the edge of a word. The price: it is in what is copied.
 */
export const JOINER = '\u2060';

/** A piece of a line: a sign of ours, words that mean what they are, or what must stay as it is. */
export interface Piece {
  kind: 'sign' | 'words' | 'fixed';
  text: string;
}

/** The line, with signs in its words held where they could begin or end something. */
export function withSignsHeld(pieces: readonly Piece[]): string {
  let line = '';
  for (const piece of pieces) line += piece.text;
  if (!pieces.some((piece) => piece.kind === 'words' && /[*_~`]/.test(piece.text))) return line;
  const opens = new Map<string, number>();
  const closes = new Map<string, number>();
  for (const { 0: sign, index } of line.matchAll(/[*_~`]/g)) {
    if (mayOpen(line, index) && !opens.has(sign)) opens.set(sign, index);
    if (mayClose(line, index)) closes.set(sign, index);
  }
  let offset = 0;
  const held = pieces.map(({ kind, text }) => {
    const start = offset;
    offset += text.length;
    if (kind !== 'words') return text;
    return text.replace(/[*_~`]/g, (sign, at: number) => {
      const place = start + at;
      const begins = mayOpen(line, place) && (closes.get(sign) ?? -1) > place;
      const ends = mayClose(line, place) && (opens.get(sign) ?? place) < place;
      return begins || ends ? JOINER + sign + JOINER : sign;
    });
  });
  return held.join('').replaceAll(JOINER + JOINER, JOINER);
}

function mayOpen(line: string, at: number): boolean {
  if (line[at] === '`') return true;
  return !isWord(line[at - 1]) && at + 1 < line.length && !/\s/.test(line[at + 1] ?? ' ');
}

function mayClose(line: string, at: number): boolean {
  if (line[at] === '`') return true;
  return !isWord(line[at + 1]) && at > 0 && !/\s/.test(line[at - 1] ?? ' ');
}

/** Only of these it is certain that no sign opens or closes beside them. */
function isWord(letter: string | undefined): boolean {
  return letter !== undefined && /[a-z0-9]/i.test(letter);
}
