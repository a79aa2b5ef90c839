/**
 * A part in Discord's markup. Pure. What its reader sees is the part's text, save for U+200B where Discord has no other
 * way: between `@` and `everyone` or `here`, between backticks in code, and between markers of emphasis that would run
 * together.
 */
import type { Part } from '../../core/channel.js';
import { isOwnLabel, isWeb, shownAddress, withMarkupEncoded } from './address.js';
import {
  addSpaced,
  type ListItem,
  nest,
  normalised,
  renderLines,
  type Style,
  type StyledRun,
  splitAtLinks,
  textOf,
  without,
  withoutStart,
} from './lines.js';

const LANGUAGE = /^[a-z0-9_+.-]+$/i;

/**
 * Wider tables are written row by row. A phone shows so many letters of fixed width in a block of code before it breaks the
 * line, and then columns cannot be made out.
 */
export const TABLE_WIDTH = 56;

export function discordText(part: Part): string {
  // For Discord a link's label goes on to the last `](` after it, in code, too: with another one it would be wrong.
  const mayLink = !part.text.includes('](');
  return renderLines(part, {
    // Discord draws its bullets by depth, the same as ours.
    bullets: ['•', '◦', '▪'],
    deepest: 10,
    fence,
    line: (runs, item) => discordLine(runs, item, mayLink),
    // A second space for an empty line: without it the line would end the quote and show the `>`.
    quote: (runs) => `> ${discordLine(runs, null, mayLink) || ' '}`,
  });
}

/** As Discord counts it for its limit of 2,000: in code points of what is sent, markup included. */
export function discordLength(part: Part): number {
  const text = discordText(part);
  return text.length - (text.match(PAIRS)?.length ?? 0);
}

const PAIRS = /[\ud800-\udbff][\udc00-\udfff]/g;

/** Three backticks end a fence, whatever it began with; and a fence of nothing but backticks would not be one. */
function fence(code: string, language: string): string {
  if (code.trim() === '') return code;
  const named = LANGUAGE.test(language) ? language : '';
  const separated = code.replace(/``(?=`)/g, `\`\`${GAP}`) + (/[^`\s]/.test(code) ? '' : GAP);
  return `\`\`\`${named}\n${separated}\n\`\`\``;
}

const MARKERS = { bold: '**', italic: '*', strike: '~~' };

/** One line. */
function discordLine(line: readonly StyledRun[], item: ListItem | null, mayLink: boolean): string {
  const start = item === null ? '' : `${item.indent}${item.marker.replace(/[•◦▪]/, '-')} `;
  let written = start;
  let atStart = true;
  /** What the last marker did, if no text came after it. */
  let last: 'closed stars' | 'opened italic' | null = null;
  nest(supported(withoutStart(line, start.length), mayLink), {
    open(style) {
      // `**a***b*` and `***a** b*` can be read in two ways.
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

/** An invisible character that separates what would be markup, where Discord knows no backslash. */
const GAP = '\u200b';

/** `]` only within a link's label: elsewhere it ends nothing. */
const SPECIAL = /[\\*_~`|<[]|(?<=<)@|:(?=\/\/|[\w+-]+:)/g;
const SPECIAL_IN_LABEL = /[\\*_~`|<[\]]|(?<=<)@|:(?=\/\/|[\w+-]+:)/g;

/** So that `<@1>`, `:smile:` and `https://` stay text. `@everyone` cannot be escaped by a backslash. */
function escaped(text: string, isLabel = false): string {
  const written = text.replace(isLabel ? SPECIAL_IN_LABEL : SPECIAL, '\\$&');
  return written.includes('@') ? written.replace(/@(?=everyone|here)/g, `@${GAP}`) : written;
}

const START = /^(\s*)(?:((?:#+|-#|[-+])(?=\s|$)|>)|(\d+)(?=\.(?:\s|$)))/;

/** At the beginning of a line, where headings, lists, quotes and small print begin. */
function startEscaped(text: string): string {
  return text.replace(START, (_all, space: string, marker?: string, number?: string) =>
    marker === undefined ? `${space}${number}\\` : `${space}\\${marker}`,
  );
}

/** Three backticks would be a fence, so no two may follow each other inside a span of two. */
function codeSpan(code: string): string {
  if (!code.includes('`')) return `\`${code}\``;
  const separated = code.replace(/`(?=`)/g, `\`${GAP}`);
  return `\`\`${separated.startsWith('`') ? ' ' : ''}${separated}${separated.endsWith('`') ? ' ' : ''}\`\``;
}

/** In letters of its name, generously. */
const LONGEST_EMOJI = 64;

/** A piece of text: words, or an address as it is to be written. */
interface TextPiece {
  kind: 'words' | 'address';
  text: string;
}

/**
 * Splits text at the addresses that Discord makes links of by itself. None may have a backslash in it, and to Discord
 * it goes on to the next space: so it is put into angle brackets where no space follows, and after a colon, with which
 * it would look like an emoji. Where that is impossible it stays text. `before` and `after` are its neighbours.
 */
function splitAtAddresses({ text, styles }: StyledRun, before: string, after: string): TextPiece[] {
  if (!text.includes('://')) return [{ kind: 'words', text }];
  const pieces: TextPiece[] = [];
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

/**
 * The runs of a line as Discord can show them. It finds the end of emphasis by its markers alone, even inside code or an
 * address, or after a backslash: so a run that holds such a marker is taken out of that emphasis. Without `mayLink` every
 * address is shown after its label.
 */
function supported(line: readonly StyledRun[], mayLink: boolean): StyledRun[] {
  return withAddressesShown(normalised(split(line)), mayLink);
}

/** Addresses and markers in the text become runs of their own, outside of the emphasis that they would end. */
function split(line: readonly StyledRun[]): StyledRun[] {
  const runs: StyledRun[] = [];
  for (const [index, run] of line.entries()) {
    if (run.kind !== 'text') {
      runs.push(withoutConflicts(run));
      continue;
    }
    const [before, after] = [line[index - 1]?.text ?? '', line[index + 1]?.text ?? ''];
    for (const { kind, text } of splitAtAddresses(run, before, after)) {
      if (kind === 'address') runs.push(withoutConflicts({ ...run, kind: 'raw', text }));
      else splitAtMarkers(runs, run, text);
    }
  }
  return runs;
}

function splitAtMarkers(runs: StyledRun[], run: StyledRun, words: string): void {
  if (run.styles.length === 0) {
    addSpaced(runs, run, words);
    return;
  }
  for (const text of words.match(/[*~\\]+|[^*~\\]+/g) ?? [])
    addSpaced(runs, withoutConflicts({ ...run, text }), text);
}

function withoutConflicts(run: StyledRun): StyledRun {
  if (run.styles.length === 0) return run;
  const conflicting: Style[] = [];
  if (run.text.includes('*')) conflicting.push('bold', 'italic');
  if (run.text.includes('\\')) conflicting.push('italic');
  if (run.text.includes('~')) conflicting.push('strike');
  return without(run, conflicting);
}

/** Where Discord would not make a link, the address is shown after the label. */
function withAddressesShown(runs: StyledRun[], mayLink: boolean): StyledRun[] {
  if (!runs.some((run) => run.styles.includes('link'))) return runs;
  const shown: StyledRun[] = [];
  for (const part of splitAtLinks(runs)) {
    const url = part[0]?.styles.includes('link') ? part[0].url : null;
    const label = textOf(part);
    if (url === null || (mayLink && isWeb(url) && isLabel(part))) {
      shown.push(...part);
      continue;
    }
    shown.push(...part.map((run) => without(run, ['link'])));
    if (!isOwnLabel(label, url)) shown.push({ kind: 'raw', text: ` (${address(url)})`, styles: [], url: '' });
  }
  return normalised(shown);
}

/** Discord makes no link with an address in its label, for it may lead elsewhere; brackets only in pairs, and not in code. */
function isLabel(runs: readonly StyledRun[]): boolean {
  const text = textOf(runs);
  if (text.includes('://') || runs.some((run) => run.kind === 'code' && /[[\]]/.test(run.text))) return false;
  return /^(?:[^[\]]|\[[^[\]]*\])*$/.test(text);
}

function address(url: string): string {
  if (isWeb(url)) return `<${withMarkupEncoded(url)}>`;
  return escaped(shownAddress(url));
}
