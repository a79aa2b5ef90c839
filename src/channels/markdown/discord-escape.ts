/** Text, code and addresses, escaped so that Discord shows them unchanged. Pure. */
import type { Run } from './runs.js';

/** An invisible character that separates what would be markup, where Discord knows no backslash. */
export const GAP = '\u200b';

/** `]` only within a link's label: elsewhere it ends nothing. */
const SPECIAL = /[\\*_~`|<[]|(?<=<)@|:(?=\/\/|[\w+-]+:)/g;
const SPECIAL_IN_LABEL = /[\\*_~`|<[\]]|(?<=<)@|:(?=\/\/|[\w+-]+:)/g;

/** So that `<@1>`, `:smile:` and `https://` stay text. `@everyone` cannot be escaped by a backslash. */
export function escaped(text: string, isLabel = false): string {
  const written = text.replace(isLabel ? SPECIAL_IN_LABEL : SPECIAL, '\\$&');
  return written.includes('@') ? written.replace(/@(?=everyone|here)/g, `@${GAP}`) : written;
}

const START = /^(\s*)(?:((?:#+|-#|[-+])(?=\s|$)|>)|(\d+)(?=\.(?:\s|$)))/;

/** At the beginning of a line, where headings, lists, quotes and small print begin. */
export function startEscaped(text: string): string {
  return text.replace(START, (_all, space: string, marker?: string, number?: string) =>
    marker === undefined ? `${space}${number}\\` : `${space}\\${marker}`,
  );
}

/** Three backticks would be a fence, so no two may follow each other inside a span of two. */
export function codeSpan(code: string): string {
  if (!code.includes('`')) return `\`${code}\``;
  const separated = code.replace(/`(?=`)/g, `\`${GAP}`);
  return `\`\`${separated.startsWith('`') ? ' ' : ''}${separated}${separated.endsWith('`') ? ' ' : ''}\`\``;
}

/** In letters of its name, generously. */
const LONGEST_EMOJI = 64;

/** A piece of text: words, or an address as it is to be written. */
export interface Piece {
  kind: 'words' | 'address';
  text: string;
}

/**
 * Splits text at the addresses that Discord makes links of by itself. None may have a backslash in it, and to Discord
 * it goes on to the next space: so it is put into angle brackets where no space follows, and after a colon, with which
 * it would look like an emoji. Where that is impossible it stays text. `before` and `after` are its neighbours.
 */
export function splitAtAddresses({ text, styles }: Run, before: string, after: string): Piece[] {
  if (!text.includes('://')) return [{ kind: 'words', text }];
  const pieces: Piece[] = [];
  let from = 0;
  for (const found of text.matchAll(/https?:\/\/[^\s<]+/g)) {
    const address = withoutEnd(found[0]);
    const end = found.index + found[0].length;
    const isEnd = end < text.length ? text[end] !== '<' : /^(?:\s|$)/.test(after);
    // The markers of emphasis after it would be taken for a part of the address.
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

/** Punctuation after it belongs to the sentence, and so does a bracket that was not opened in it. */
function withoutEnd(address: string): string {
  let end = address.length;
  while (end > 0 && isPunctuation(address, end - 1)) end -= 1;
  return address.slice(0, end);
}

function isPunctuation(address: string, at: number): boolean {
  const last = address[at] ?? '';
  return last === ')' ? !address.includes('(') : '.,:;"\'!?]'.includes(last);
}
