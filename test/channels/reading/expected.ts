/** A part as letters with styles: what a reading of its rendering is held against. */
import type { Mark, Part } from '../../../src/core/channel.js';
import { type Letter, letters, words } from './seen.js';

export interface Rules {
  /** The style that a mark comes to; null where the platform shows nothing of it. */
  style(mark: Mark): string | null;
  /** What stands behind a link's label on a line: the address, where the link itself is not to be. `code` is of it. */
  told(label: string, url: string, code: string): string | null;
}

/** By line; a line that a quote touches is quoted whole, and code is not. */
export function expected({ text, marks }: Part, rules: Rules): Letter[][] {
  let offset = 0;
  return text.split('\n').map((line) => {
    const start = offset;
    offset += line.length + 1;
    const isQuoted = marks.some((mark) => mark.kind === 'quote' && touches(text, marks, mark, start, line));
    const seen: (Letter & { url: string | null })[] = [];
    let at = start;
    for (const letter of line) {
      const here = marks.filter((mark) => mark.offset <= at && at < mark.offset + mark.length);
      const isCode = here.some((mark) => mark.kind === 'pre');
      const kept = here.filter((mark) => mark.kind !== 'quote' && (mark.kind === 'pre' || !isCode));
      const styles = new Set(kept.map(rules.style).filter((style) => style !== null));
      if (isQuoted && !isCode) styles.add('quote');
      const link = isCode ? undefined : here.find((mark) => mark.kind === 'link');
      seen.push({ letter, styles, url: link?.kind === 'link' ? link.url : null });
      at += letter.length;
    }
    return withLinksTold(seen, rules);
  });
}

/** Something to be seen on the line is in the quote, and not in code. */
function touches(text: string, marks: readonly Mark[], mark: Mark, start: number, line: string): boolean {
  const end = Math.min(start + line.length, mark.offset + mark.length);
  for (let at = Math.max(start, mark.offset); at < end; at += 1) {
    const isCode = marks.some(
      ({ kind, offset, length }) => kind === 'pre' && offset <= at && at < offset + length,
    );
    if (!isCode && /\S/.test(text[at] ?? ' ')) return true;
  }
  return false;
}

function withLinksTold(seen: readonly (Letter & { url: string | null })[], rules: Rules): Letter[] {
  const told: Letter[] = [];
  for (let from = 0, to = 0; from < seen.length; from = to) {
    const url = seen[from]?.url ?? null;
    while (to < seen.length && (seen[to]?.url ?? null) === url) to += 1;
    const label = seen.slice(from, to);
    const code = words(label.filter(({ styles }) => styles.has('code')));
    const text = words(label).trim();
    const shown = url === null || text === '' ? null : rules.told(text, url, code);
    for (const { letter, styles } of label) {
      const isTold = url !== null && shown !== null;
      told.push({
        letter,
        styles: new Set([...styles].filter((style) => !isTold || !style.startsWith('link '))),
      });
    }
    const isQuoted = label.some(({ styles }) => styles.has('quote'));
    if (shown !== null && shown !== '') told.push(...letters(shown, isQuoted ? ['quote'] : []));
  }
  return told;
}
