/** Words, code and addresses as Discord shows them unchanged. */
import type { Run } from './runs.js';

/** Invisible, and no letter of a name: what Discord has no backslash for is held apart with it. */
export const GAP = '\u200b';

/** `]` only within a link's label: elsewhere it ends nothing. */
const SIGNS = /[\\*_~`|<[]|(?<=<)@|:(?=\/\/|[\w+-]+:)/g;
const SIGNS_IN_LABEL = /[\\*_~`|<[\]]|(?<=<)@|:(?=\/\/|[\w+-]+:)/g;

/** So that `<@1>`, `:smile:` and `https://` stay text. `@everyone` cannot be escaped by a backslash. */
export function escaped(text: string, isLabel = false): string {
  const written = text.replace(isLabel ? SIGNS_IN_LABEL : SIGNS, '\\$&');
  return written.includes('@') ? written.replace(/@(?=everyone|here)/g, `@${GAP}`) : written;
}

const FRONT = /^(\s*)(?:((?:#+|-#|[-+])(?=\s|$)|>)|(\d+)(?=\.(?:\s|$)))/;

/** At the beginning of a line, where headings, lists, quotes and small print begin. */
export function frontEscaped(text: string): string {
  return text.replace(FRONT, (_all, space: string, sign?: string, number?: string) =>
    sign === undefined ? `${space}${number}\\` : `${space}\\${sign}`,
  );
}

/** Three backticks would be a fence, so no two stand together within two. */
export function codeSpan(code: string): string {
  if (!code.includes('`')) return `\`${code}\``;
  const held = code.replace(/`(?=`)/g, `\`${GAP}`);
  return `\`\`${held.startsWith('`') ? ' ' : ''}${held}${held.endsWith('`') ? ' ' : ''}\`\``;
}

/** In letters of its name, generously. */
const LONGEST_EMOJI = 64;

/** A piece of text: words, or an address as it is to be written. */
export interface Piece {
  kind: 'words' | 'address';
  text: string;
}

/**
 * Addresses that Discord makes links by itself. No backslash may stand in one, and it goes on to the next space: so
 * it stands in angle brackets where there is none, and behind a colon, with which it would look like an emoji. Where
 * that cannot be it is words. `before` and `after` are what stands beside it.
 */
export function addressesApart({ text, styles }: Run, before: string, after: string): Piece[] {
  if (!text.includes('://')) return [{ kind: 'words', text }];
  const pieces: Piece[] = [];
  let from = 0;
  for (const found of text.matchAll(/https?:\/\/[^\s<]+/g)) {
    const address = withoutEnd(found[0]);
    const end = found.index + found[0].length;
    const isEnd = end < text.length ? text[end] !== '<' : /^(?:\s|$)/.test(after);
    // What is emphasised behind one that cannot be: its signs would be taken for a part of it.
    const isLast = styles.length === 0 || end === found.index + address.length || !/[*~\\]/.test(address);
    const isAlone =
      isEnd && isLast && !/:[\w+-]*$/.test((before + text.slice(0, found.index)).slice(-LONGEST_EMOJI));
    if (!isAddress(address) || (!isAlone && address.includes('>'))) continue;
    if (found.index > from) pieces.push({ kind: 'words', text: text.slice(from, found.index) });
    pieces.push({ kind: 'address', text: isAlone ? address : `<${address}>` });
    from = found.index + address.length;
  }
  if (from < text.length) pieces.push({ kind: 'words', text: text.slice(from) });
  return pieces;
}

function isAddress(text: string): boolean {
  return /\/\/.+[^.,:;"'\]]$/.test(text) && !/@(?:everyone|here)/.test(text);
}

/** Punctuation behind it belongs to the sentence, and so does a bracket that was not opened in it. */
function withoutEnd(address: string): string {
  let end = address.length;
  while (end > 0 && isPunctuation(address, end - 1)) end -= 1;
  return address.slice(0, end);
}

function isPunctuation(address: string, at: number): boolean {
  const last = address[at] ?? '';
  return last === ')' ? !address.includes('(') : '.,:;"\'!?]'.includes(last);
}
