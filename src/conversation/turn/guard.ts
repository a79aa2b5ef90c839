/** Step 5 of the route: an answer of a character ends where somebody else would speak, and is not the last one again. Pure. */

export interface Guard {
  /** Of people and other personas, who speak for themselves. */
  names: readonly string[];
  /** The persona's last answer; null: none is known. */
  before: string | null;
}

/** Signs of emphasis and brackets around a name. */
const BEFORE_NAME = /^[\s*_~(["“«【]{0,20}/u;
const BEHIND_NAME = /^[\s*_~)\]"”»】]{0,20}[:：]/u;
const FENCE = /^ {0,3}(`{3,}|~{3,})/;
/** Longer than any name with its signs. */
const LINE_CHARS = 300;

/** The text before the first line that begins with one of the names and a colon, outside of code. `isGrowing`: more may follow. */
export function guarded(text: string, { names }: Guard, isGrowing = false): string {
  const wanted = names.map(folded).filter((name) => name !== '');
  if (wanted.length === 0) return text;
  let fence: string | null = null;
  for (let from = 0; from <= text.length; ) {
    const found = text.indexOf('\n', from);
    const end = found < 0 ? text.length : found;
    const line = text.slice(from, Math.min(end, from + LINE_CHARS));
    const mark = FENCE.exec(line)?.[1];
    const isEdge = mark !== undefined && (fence === null || mark.startsWith(fence));
    if (isEdge) fence = fence === null ? mark : null;
    else if (fence === null) {
      const isLast = isGrowing && found < 0;
      if (wanted.some((name) => speaks(line, name) || (isLast && mayYetSpeak(line, name)))) {
        return text.slice(0, from).trimEnd();
      }
    }
    from = end + 1;
  }
  return text;
}

function speaks(line: string, name: string): boolean {
  const words = folded(line.replace(BEFORE_NAME, ''));
  return words.startsWith(name) && BEHIND_NAME.test(words.slice(name.length));
}

/** The beginning of a line that will, or will not, be somebody's name and a colon. */
function mayYetSpeak(line: string, name: string): boolean {
  const words = folded(line.replace(BEFORE_NAME, ''));
  if (words === '') return line !== '';
  if (words.length <= name.length) return name.startsWith(words);
  return words.startsWith(name) && /^[\s*_~)\]"”»】]{1,20}$/u.test(words.slice(name.length));
}

function folded(text: string): string {
  return text.normalize('NFC').toLowerCase();
}

/** Whether the model is to be asked once more: nothing is left of the answer, or it is the last one again. */
export function isInVain(text: string, { before }: Guard): boolean {
  return text === '' || text === before?.trim();
}
