/** Shields characters of a text that WhatsApp would take for markup. Pure. */

/**
 * WORD JOINER, which is invisible. WhatsApp has no escapes, and does not document which letters may stand beside a
 * marker; between two of these, none is at the edge of a word. The price: they are in what is copied.
 */
export const JOINER = '\u2060';

/** A piece of a line: a marker of ours, text that is no markup, or what must stay as it is. */
export interface Piece {
  kind: 'marker' | 'words' | 'fixed';
  text: string;
}

/** The line, with marker characters in its text shielded where they could begin or end markup. */
export function withMarkersShielded(pieces: readonly Piece[]): string {
  let line = '';
  for (const piece of pieces) line += piece.text;
  if (!pieces.some((piece) => piece.kind === 'words' && /[*_~`]/.test(piece.text))) return line;
  const opens = new Map<string, number>();
  const closes = new Map<string, number>();
  for (const { 0: character, index } of line.matchAll(/[*_~`]/g)) {
    if (mayOpen(line, index) && !opens.has(character)) opens.set(character, index);
    if (mayClose(line, index)) closes.set(character, index);
  }
  let offset = 0;
  const shielded = pieces.map(({ kind, text }) => {
    const start = offset;
    offset += text.length;
    if (kind !== 'words') return text;
    return text.replace(/[*_~`]/g, (character, at: number) => {
      const position = start + at;
      const begins = mayOpen(line, position) && (closes.get(character) ?? -1) > position;
      const ends = mayClose(line, position) && (opens.get(character) ?? position) < position;
      return begins || ends ? JOINER + character + JOINER : character;
    });
  });
  return shielded.join('').replaceAll(JOINER + JOINER, JOINER);
}

function mayOpen(line: string, at: number): boolean {
  if (line[at] === '`') return true;
  return !isWord(line[at - 1]) && at + 1 < line.length && !/\s/.test(line[at + 1] ?? ' ');
}

function mayClose(line: string, at: number): boolean {
  if (line[at] === '`') return true;
  return !isWord(line[at + 1]) && at > 0 && !/\s/.test(line[at - 1] ?? ' ');
}

/** Only beside these it is certain that no marker opens or closes. */
function isWord(letter: string | undefined): boolean {
  return letter !== undefined && /[a-z0-9]/i.test(letter);
}
