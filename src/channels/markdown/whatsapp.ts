/**
 * A part in WhatsApp's markup. Pure. WhatsApp has no escapes, labelled links, nested lists or code languages:
 * a link becomes `label (address)`, marks that cannot be shown (inside a word) are dropped, and text that
 * looks like markup is shielded by the invisible U+2060.
 */
import type { Part } from '../../core/channel.js';
import { shownAddress, withMarkupEncoded } from './inline.js';
import {
  addSpaced,
  grouped,
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

/** In columns, the width of a bubble on a phone. Wider tables are written row by row. */
export const TABLE_WIDTH = 30;

export function whatsappText(part: Part): string {
  return renderLines(part, {
    bullets: ['•'],
    deepest: 1,
    fence,
    line: whatsappLine,
    // An empty line of a quote would show the `>`.
    quote: (runs) => (textOf(runs).trim() === '' ? '' : `> ${whatsappLine(runs, null)}`),
  });
}

/** No line ends next to its backticks: they would show as empty lines. */
function fence(code: string): string {
  return code.trim() === '' ? code : fenced(code, /`(?=``)/g);
}

/** Separates backticks that would end the code, and shields those at either end. */
function fenced(code: string, tooMany: RegExp): string {
  const apart = code.replace(tooMany, `\`${JOINER}`);
  return `\`\`\`${apart.replace(/^`/, `${JOINER}\``).replace(/`$/, `\`${JOINER}`)}\`\`\``;
}

function whatsappLine(line: readonly StyledRun[], item: ListItem | null): string {
  const start = item === null ? '' : `${item.marker.replace('•', '-')} `;
  let written = '';
  /** Positions of characters in the text that look like markers but are none. */
  const loose = new Set<number>();
  const marker = (style: Style) => {
    if (style !== 'link') written += MARKERS[style];
  };
  nest(supported(withoutStart(line, start.length)), {
    open: marker,
    close: marker,
    text({ kind, text }) {
      const isText = kind === 'text' || kind === 'space';
      for (const { index } of isText ? text.matchAll(/[*_~`]/g) : []) loose.add(written.length + index);
      written += kind === 'code' ? codeSpan(text) : text;
    },
  });
  const shown = withMarkersShielded(written, loose);
  return item === null ? startShielded(shown) : start + shown;
}

/** With three backticks if the code contains one. */
function codeSpan(code: string): string {
  return code.includes('`') ? fenced(code, /`(?=`)/g) : `\`${code}\``;
}

/** An invisible character in front keeps the line from beginning a list or a quote. */
function startShielded(line: string): string {
  return line.replace(/^(\s*)(?=[-*] |>|\d+\. )/, `$1${JOINER}`);
}

/** WORD JOINER, invisible: between two of these, no marker is at a word's edge. They do get copied. */
const JOINER = '\u2060';

/** After a letter or digit a marker certainly does not open, nor close before one. */
const OPENING = /(?<![a-z0-9])[*_~](?=\S)|`/iy;
const CLOSING = /(?<=\S)[*_~](?![a-z0-9])|`/iy;

function isAt(pattern: RegExp, line: string, at: number): boolean {
  pattern.lastIndex = at;
  return pattern.test(line);
}

/** Shields the loose marker characters that could begin or end markup. */
function withMarkersShielded(line: string, loose: ReadonlySet<number>): string {
  if (loose.size === 0) return line;
  const firstOpening = new Map<string, number>();
  const lastClosing = new Map<string, number>();
  for (const { 0: character, index } of line.matchAll(/[*_~`]/g)) {
    if (isAt(OPENING, line, index) && !firstOpening.has(character)) firstOpening.set(character, index);
    if (isAt(CLOSING, line, index)) lastClosing.set(character, index);
  }
  const shielded = line.replace(/[*_~`]/g, (character, at: number) => {
    const begins = isAt(OPENING, line, at) && (lastClosing.get(character) ?? -1) > at;
    const ends = isAt(CLOSING, line, at) && (firstOpening.get(character) ?? at) < at;
    return loose.has(at) && (begins || ends) ? JOINER + character + JOINER : character;
  });
  return shielded.replaceAll(JOINER + JOINER, JOINER);
}

const MARKERS = { bold: '*', italic: '_', strike: '~' };

const EMPHASIS = ['bold', 'italic', 'strike'] as const;
const WORD_END = /[\p{L}\p{N}\p{M}]$/u;
const WORD_START = /^[\p{L}\p{N}\p{M}]/u;
const MARKER_START = /^[*_~`]/;
const MARKER_END = /[*_~`]$/;

/**
 * A line's runs as WhatsApp can show them. A marker opens after whitespace or punctuation and right before a
 * word, and closes the other way round: emphasis elsewhere, with its own marker inside, or on code and
 * addresses is dropped. Chinese, Japanese and Korean have no spaces there: a hair space makes room.
 */
function supported(line: readonly StyledRun[]): StyledRun[] {
  const apart = setApart(withAddressesShown(normalised(line), () => false, addressOf));
  let runs = normalised(splitAtAddresses(apart).map(codeOrWords));
  for (const style of EMPHASIS) runs = openable(runs, style);
  return normalised(runs);
}

const HAIR_SPACE = '\u200a';
const CJK =
  /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}\p{sc=Bopomofo}\u3000-\u303f\uff00-\uffef]/u;

/** Inserts a hair space where a marker would touch such a letter. */
function setApart(runs: readonly StyledRun[]): readonly StyledRun[] {
  if (!runs.some((run) => CJK.test(run.text))) return runs;
  const apart: StyledRun[] = [];
  for (const run of runs) {
    const last = apart.at(-1);
    if (last !== undefined && isCrowded(last, run)) {
      const styles = run.styles.filter((style) => last.styles.includes(style));
      apart.push({ kind: 'space', text: HAIR_SPACE, styles, url: '' });
    }
    apart.push(run);
  }
  return apart;
}

function isCrowded(before: StyledRun, after: StyledRun): boolean {
  const isOpened = isMarked(after, before) && endsInWord(before);
  const isClosed = isMarked(before, after) && beginsWithWord(after);
  return (isOpened || isClosed) && CJK.test(lastOf(before.text) + after.text.slice(0, 2));
}

/** Whether one of its markers is between the two runs. */
function isMarked({ kind, styles }: StyledRun, other: StyledRun): boolean {
  return (kind === 'code' && other.kind === 'text') || styles.some((style) => !other.styles.includes(style));
}

function lastOf(text: string): string {
  return Array.from(text.slice(-2)).at(-1) ?? '';
}

/** In brackets after the label: WhatsApp links addresses automatically. */
function addressOf(url: string): StyledRun[] {
  const address = withMarkupEncoded(shownAddress(url));
  return [
    { kind: 'space', text: ' ', styles: [], url: '' },
    { kind: 'text', text: `(${address})`, styles: [], url: '' },
  ];
}

/** Addresses become runs of their own, without marks: no marker may be inside one or right after it. */
function splitAtAddresses(line: readonly StyledRun[]): readonly StyledRun[] {
  const text = textOf(line);
  if (!text.includes('://')) return line;
  const runs: StyledRun[] = [];
  const addresses = text.matchAll(/https?:\/\/[^\s`]+/gi);
  let found = addresses.next().value;
  let at = 0;
  for (const run of line) {
    const end = at + run.text.length;
    for (let from = at; from < end; ) {
      const isIn = found !== undefined && found.index <= from;
      const edge = found === undefined ? end : isIn ? found.index + found[0].length : found.index;
      const to = Math.min(end, edge);
      const shown = run.text.slice(from - at, to - at);
      if (isIn) runs.push({ ...without(run, EMPHASIS), kind: 'raw', text: shown });
      else addSpaced(runs, { ...run, text: shown });
      if (isIn && to === edge) found = addresses.next().value;
      from = to;
    }
    at = end;
  }
  return runs;
}

/** Code inside a word, or next to an address or a backtick, is shown as text. */
function codeOrWords(run: StyledRun, index: number, line: readonly StyledRun[]): StyledRun {
  if (run.kind !== 'code') return run;
  const [before, after] = [line[index - 1], line[index + 1]];
  const isWithin = endsInWord(before) || beginsWithWord(after);
  const isBesideBacktick = before?.text.endsWith('`') || after?.text.startsWith('`');
  const isBesideAddress = before?.kind === 'raw' || after?.kind === 'raw';
  return isWithin || isBesideBacktick || isBesideAddress ? { ...run, kind: 'text' } : without(run, EMPHASIS);
}

function endsInWord(run: StyledRun | undefined): boolean {
  return run !== undefined && WORD_END.test(run.text.slice(-2));
}

function beginsWithWord(run: StyledRun | undefined): boolean {
  return run !== undefined && WORD_START.test(run.text);
}

/** Drops the style where WhatsApp would show its markers. */
function openable(runs: StyledRun[], style: keyof typeof MARKERS): StyledRun[] {
  let at = 0;
  return grouped(runs, ({ styles }) => styles.includes(style)).flatMap((span) => {
    const before = runs[at - 1];
    at += span.length;
    if (!span[0]?.styles.includes(style)) return span;
    const isKept = isShown(textOf(span), MARKERS[style], before, runs[at]);
    return isKept ? span : span.map((run) => without(run, [style]));
  });
}

function isShown(
  text: string,
  marker: string,
  before: StyledRun | undefined,
  after: StyledRun | undefined,
): boolean {
  if (text.includes(marker) || before?.kind === 'raw' || after?.kind === 'raw') return false;
  // A marker character in the text may need a shield, and then no letter is at the edge.
  if (MARKER_START.test(text) || MARKER_END.test(text)) return false;
  if (MARKER_END.test(before?.text ?? '') || MARKER_START.test(after?.text ?? '')) return false;
  return !endsInWord(before) && !beginsWithWord(after);
}
