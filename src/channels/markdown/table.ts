/**
 * Tables, which chat platforms have none of: as lines of aligned columns, for a fixed-width font, or row by row, for
 * a screen too narrow for that.
 */
import type { Token } from 'markdown-it';
import { once } from '../../core/once.js';
import { inlineText, writeBold, writeInline } from './inline.js';
import type { Writer } from './writer.js';

type Alignment = 'left' | 'right' | 'center';

/** The cells of each row, as the parser has them; the first row is the header. */
export interface Table {
  rows: Token[][][];
  alignments: Alignment[];
}

/** A longer cell pushes its row out instead of widening every other row. */
const MAX_PADDING = 40;

export function tableOf(tokens: Token[]): Table {
  const rows: Token[][][] = [];
  const alignments: Alignment[] = [];
  for (const token of tokens) {
    if (token.type === 'tr_open') rows.push([]);
    else if (token.type === 'th_open') alignments.push(alignmentOf(token));
    else if (token.type === 'inline') rows.at(-1)?.push(token.children ?? []);
  }
  return { rows, alignments };
}

function alignmentOf(cell: Token): Alignment {
  const style = String(cell.attrGet('style') ?? '');
  return style.endsWith('right') ? 'right' : style.endsWith('center') ? 'center' : 'left';
}

/** Aligned. */
export function tableText({ rows, alignments }: Table): string {
  const measured = rows.map((row) => {
    const texts = withoutEmptyEnd(row.map((cell) => inlineText(cell, '\n')));
    return texts.map((text) => ({ lines: text.split('\n'), columns: lineWidth(text) }));
  });
  const columns = alignments.map(() => 1);
  for (const row of measured) {
    row.forEach((cell, column) => {
      if (cell.columns <= MAX_PADDING) columns[column] = Math.max(columns[column] ?? 1, cell.columns);
    });
  }
  const [head = [], ...others] = measured.map((row) => {
    const height = row.reduce((most, { lines }) => Math.max(most, lines.length), 1);
    return Array.from({ length: height }, (_, line) =>
      row
        .map((cell, column) =>
          pad(cell.lines[line] ?? '', columns[column] ?? 0, alignments[column] ?? 'left'),
        )
        .join(' | ')
        .trimEnd(),
    );
  });
  const rule = columns.map((count) => '-'.repeat(count)).join('-|-');
  return [...head, rule, ...others.flat()].join('\n');
}

/** How many columns the longest line takes. */
export function lineWidth(text: string): number {
  return text.split('\n').reduce((longest, line) => Math.max(longest, width(line)), 0);
}

/** Each bold title is a mark of its own, of which platforms take so many in one message. */
const MOST_BOLD = 60;

/** Row by row, a line for each cell that says something; `newline` carries the indentation of a list. */
export function writeRows(writer: Writer, { rows }: Table, newline: string): void {
  const [header = [], ...others] = rows;
  const writeTitle = header.length * others.length > MOST_BOLD ? writeInline : writeBold;
  let between = '';
  for (const row of others) {
    row.forEach((cell, column) => {
      if (inlineText(cell) === '') return;
      writer.write(between);
      between = newline;
      const title = header[column] ?? [];
      if (inlineText(title) !== '') {
        writeTitle(writer, title, ' ');
        writer.write(': ');
      }
      writeInline(writer, cell, newline);
    });
    if (between !== '') between = `\n${newline}`;
  }
}

/** Rows that are too short are filled up by the parser; that is not to be seen. */
function withoutEmptyEnd(row: string[]): string[] {
  let end = row.length;
  while (end > 0 && row[end - 1] === '') end -= 1;
  return row.slice(0, end);
}

function pad(text: string, columns: number, alignment: Alignment): string {
  const missing = Math.max(0, columns - width(text));
  const before = alignment === 'right' ? missing : alignment === 'center' ? missing >> 1 : 0;
  return ' '.repeat(before) + text + ' '.repeat(missing - before);
}

const graphemes = once(() => new Intl.Segmenter(undefined, { granularity: 'grapheme' }));

const WIDE =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]/u;
const EMOJI = /^\p{Emoji_Presentation}|^\p{Extended_Pictographic}\ufe0f|^\p{Regional_Indicator}/u;
const NOTHING = /^[\p{Mark}\p{Format}\p{Control}]+$/u;
const ASCII = /^[\x20-\x7e]*$/;

/** How many columns of a fixed-width font a text takes: two for wide letters and emoji, none for what combines. */
function width(text: string): number {
  if (ASCII.test(text)) return text.length;
  let columns = 0;
  for (const { segment } of graphemes().segment(text)) {
    if (!NOTHING.test(segment)) columns += WIDE.test(segment) || EMOJI.test(segment) ? 2 : 1;
  }
  return columns;
}
