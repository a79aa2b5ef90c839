/**
 * A part in Discord's markup. Pure. Readers see the part's text, plus U+200B where Discord has no escape:
 * between `@` and `everyone` or `here`, between backticks in code, and between emphasis markers that would
 * merge.
 */
import type { Part } from '../../core/channel.js';
import { isWeb, shownAddress, withMarkupEncoded } from './inline.js';
import {
  addSpaced,
  type ListItem,
  nest,
  normalised,
  renderLines,
  type Style,
  type StyledRun,
  textOf,
  withAddressesShown,
  without,
  withoutStart,
} from './lines.js';

const LANGUAGE = /^[a-z0-9_+.-]+$/i;

/** In columns, the width of a code block on a phone. Wider tables are written row by row. */
export const TABLE_WIDTH = 56;

export function discordText(part: Part): string {
  // Discord extends a link's label to the last `](` after it, even in code: another one would break the link.
  const mayLink = !part.text.includes('](');
  return renderLines(part, {
    // Discord draws the same bullets by depth.
    bullets: ['•', '◦', '▪'],
    deepest: 10,
    fence,
    line: (runs, item) => discordLine(runs, item, mayLink),
    // An empty line needs a second space: without it the quote would end and show the `>`.
    quote: (runs) => `> ${discordLine(runs, null, mayLink) || ' '}`,
  });
}

/** As Discord counts towards its limit of 2,000: code points sent, markup included. */
export function discordLength(part: Part): number {
  const text = discordText(part);
  return text.length - (text.match(PAIRS)?.length ?? 0);
}

const PAIRS = /[\ud800-\udbff][\udc00-\udfff]/g;

/** Three backticks always end a fence, however it began; and a fence of only backticks would not be one. */
function fence(code: string, language: string): string {
  if (code.trim() === '') return code;
  const named = LANGUAGE.test(language) ? language : '';
  const separated = code.replace(/``(?=`)/g, `\`\`${GAP}`) + (/[^`\s]/.test(code) ? '' : GAP);
  return `\`\`\`${named}\n${separated}\n\`\`\``;
}

const MARKERS = { bold: '**', italic: '*', strike: '~~' };

function discordLine(line: readonly StyledRun[], item: ListItem | null, mayLink: boolean): string {
  const start = item === null ? '' : `${item.indent}${item.marker.replace(/[•◦▪]/, '-')} `;
  let written = start;
  let atStart = true;
  /** Last marker written, if no text has followed it. */
  let last: 'closed stars' | 'opened italic' | null = null;
  nest(supported(withoutStart(line, start.length), mayLink), {
    open(style) {
      // `**a***b*` and `***a** b*` are ambiguous.
      const clashes = last === 'closed stars' ? style === 'bold' || style === 'italic' : style === 'bold';
      if (last !== null && clashes) written += GAP;
      written += style === 'link' ? '[' : MARKERS[style];
      last = style === 'italic' ? 'opened italic' : null;
    },
    close(style, { url }) {
      written += style === 'link' ? `](<${withMarkupEncoded(url)}>)` : MARKERS[style];
      last = style === 'bold' || style === 'italic' ? 'closed stars' : null;
    },
    text(run) {
      written += shown(run, atStart);
      if (run.kind !== 'space') atStart = false;
      last = null;
    },
  });
  return written;
}

function shown(run: StyledRun, atStart: boolean): string {
  if (run.kind === 'code') return codeSpan(run.text);
  if (run.kind !== 'text') return run.text;
  const words = escaped(run.text, run.styles.includes('link'));
  return atStart ? startEscaped(words) : words;
}

/** Invisible separator for would-be markup that a backslash cannot escape. */
const GAP = '\u200b';

const SPECIAL = /[\\*_~`|<[]|(?<=<)@|:(?=\/\/|[\w+-]+:)/g;

/** Keeps `<@1>`, `:smile:` and `https://` as text. A backslash does not escape `@everyone`. */
function escaped(text: string, isLabel = false): string {
  const marked = text.replace(SPECIAL, '\\$&');
  // Outside of a link's label this ends nothing.
  const written = isLabel ? marked.replaceAll(']', '\\]') : marked;
  return written.includes('@') ? written.replace(/@(?=everyone|here)/g, `@${GAP}`) : written;
}

const START = /^(\s*)(?:((?:#+|-#|[-+])(?=\s|$)|>)|(\d+)(?=\.(?:\s|$)))/;

/** Escapes the start of a line, where headings, lists, quotes and small print begin. */
function startEscaped(text: string): string {
  return text.replace(START, (_all, space: string, marker?: string, number?: string) =>
    marker === undefined ? `${space}${number}\\` : `${space}\\${marker}`,
  );
}

/** Three backticks would be a fence, so a span of two must not contain two in a row. */
function codeSpan(code: string): string {
  if (!code.includes('`')) return `\`${code}\``;
  const separated = code.replace(/`(?=`)/g, `\`${GAP}`);
  return `\`\`${separated.startsWith('`') ? ' ' : ''}${separated}${separated.endsWith('`') ? ' ' : ''}\`\``;
}

/** Characters of an emoji's name, generously. */
const LONGEST_EMOJI = 64;

/**
 * Splits text at the addresses that Discord links automatically, which become raw. An address must not contain a
 * backslash, and extends to the next space: it goes into angle brackets where none follows, and after a colon,
 * which would make an emoji of it. Where that fails it stays text. `before` and `after`: the adjacent text.
 */
function splitAtAddresses(run: StyledRun, before: string, after: string): StyledRun[] {
  const { text, styles } = run;
  if (!text.includes('://')) return [run];
  const pieces: StyledRun[] = [];
  let from = 0;
  for (const found of text.matchAll(/https?:\/\/[^\s<]+/g)) {
    const address = withoutEnd(found[0]);
    const end = found.index + found[0].length;
    const isEnd = end < text.length ? text[end] !== '<' : /^(?:\s|$)/.test(after);
    // Discord would take following emphasis markers as part of the address.
    const isLast = styles.length === 0 || end === found.index + address.length || !/[*~\\]/.test(address);
    const isAlone =
      isEnd && isLast && !/:[\w+-]*$/.test((before + text.slice(0, found.index)).slice(-LONGEST_EMOJI));
    if (!isAddress(address) || (!isAlone && address.includes('>'))) continue;
    if (found.index > from) pieces.push({ ...run, text: text.slice(from, found.index) });
    pieces.push({ ...run, kind: 'raw', text: isAlone ? address : `<${address}>` });
    from = found.index + address.length;
  }
  if (from < text.length) pieces.push({ ...run, text: text.slice(from) });
  return pieces;
}

function isAddress(text: string): boolean {
  return /\/\/.+[^.,:;"'\]]$/.test(text) && !/@(?:everyone|here)/.test(text);
}

/** Trailing punctuation belongs to the sentence, as does an unmatched closing bracket. */
function withoutEnd(address: string): string {
  const signs = address.includes('(') ? '.,:;"\'!?]' : '.,:;"\'!?])';
  let end = address.length;
  while (signs.includes(address[end - 1] ?? ' ')) end -= 1;
  return address.slice(0, end);
}

/**
 * A line's runs as Discord can show them. Discord ends emphasis at the next marker, even inside code, an
 * address or after a backslash: a run containing that marker loses the emphasis. Without `mayLink` every
 * address is shown after its label.
 */
function supported(line: readonly StyledRun[], mayLink: boolean): StyledRun[] {
  return normalised(
    withAddressesShown(
      normalised(split(line)),
      (link, url) => mayLink && isWeb(url) && isLabel(link),
      (url) => [{ kind: 'raw', text: ` (${address(url)})`, styles: [], url: '' }],
    ),
  );
}

/** Addresses and markers in the text become runs of their own, outside the emphasis that they would end. */
function split(line: readonly StyledRun[]): StyledRun[] {
  const runs: StyledRun[] = [];
  for (const [index, run] of line.entries()) {
    const [before, after] = [line[index - 1]?.text ?? '', line[index + 1]?.text ?? ''];
    for (const piece of run.kind === 'text' ? splitAtAddresses(run, before, after) : [run]) {
      const isStyledText = piece.kind === 'text' && piece.styles.length > 0;
      const texts = isStyledText ? piece.text.match(/[*~\\]+|[^*~\\]+/g) : null;
      for (const text of texts ?? [piece.text]) addSpaced(runs, withoutConflicts({ ...piece, text }));
    }
  }
  return runs;
}

function withoutConflicts(run: StyledRun): StyledRun {
  if (run.styles.length === 0) return run;
  const conflicting: Style[] = [];
  if (run.text.includes('*')) conflicting.push('bold', 'italic');
  if (run.text.includes('\\')) conflicting.push('italic');
  if (run.text.includes('~')) conflicting.push('strike');
  return without(run, conflicting);
}

/** Discord refuses a label that contains an address; brackets must be balanced, and not in code. */
function isLabel(runs: readonly StyledRun[]): boolean {
  const text = textOf(runs);
  if (text.includes('://') || runs.some((run) => run.kind === 'code' && /[[\]]/.test(run.text))) return false;
  return /^(?:[^[\]]|\[[^[\]]*\])*$/.test(text);
}

function address(url: string): string {
  if (isWeb(url)) return `<${withMarkupEncoded(url)}>`;
  return escaped(shownAddress(url));
}
