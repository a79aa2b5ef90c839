/** Parsed Markdown as text with marks. A table becomes aligned columns or, on narrow screens, row after row. */
import type { Token } from 'markdown-it';
import type { Part } from '../../core/channel.js';
import { once } from '../../core/concurrency.js';
import { formulaOf } from './formulas.js';
import { createWriter, inlineText, isBreak, type Writer, writeBold, writeInline } from './inline.js';

type Alignment = 'left' | 'right' | 'center';

/** The cells of each row, as parsed; the first row is the header. */
interface Table {
  rows: Token[][][];
  alignments: Alignment[];
}

/** In columns. A longer cell only shifts its own row, instead of widening every other one. */
const MAX_PADDING = 40;

function tableOf(tokens: Token[]): Table {
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

/** Aligned columns. */
function tableText({ rows, alignments }: Table): string {
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

/** Width of the longest line, in columns. */
function lineWidth(text: string): number {
  return text.split('\n').reduce((longest, line) => Math.max(longest, width(line)), 0);
}

/** Each bold title takes a mark, and platforms limit the marks of a message. */
const MOST_BOLD = 60;

/** Row by row, one line for each non-empty cell; `newline` carries the indentation of a list. */
function writeRows(writer: Writer, { rows }: Table, newline: string): void {
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

/** Drops the empty cells with which the parser pads short rows. */
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

/** Width in columns of a fixed-width font: two for wide letters and emoji, none for combining characters. */
function width(text: string): number {
  if (ASCII.test(text)) return text.length;
  let columns = 0;
  for (const { segment } of graphemes().segment(text)) {
    if (!NOTHING.test(segment)) columns += WIDE.test(segment) || EMOJI.test(segment) ? 2 : 1;
  }
  return columns;
}

const BULLETS = ['• ', '◦ ', '▪ '];
const RULE = '———';
const TASK = /^\[([ xX])\][ \t]+/;

/** An open quote or list item. `first` is an item's bullet until its first line is written. */
type Container = { kind: 'quote'; start: number | null } | { kind: 'item'; first: string; rest: string };

type Lists = { next: number | null }[];

export function render(tokens: Token[], tableWidth = Number.POSITIVE_INFINITY): Part {
  const writer = createWriter();
  const containers: Container[] = [];
  const lists: Lists = [];
  let lastLine = 0;

  /** Begins a text block: the space before it, then the bullets and indentation of its containers. */
  function begin(block: Token, ownLine = false): void {
    const [from, to] = block.map ?? [lastLine, lastLine];
    if (writer.length() > 0) writer.write(from > lastLine ? '\n\n' : '\n');
    lastLine = Math.max(to, from + 1);
    for (const container of containers) {
      if (container.kind === 'quote') container.start ??= writer.length();
      else if (container.first !== '') {
        writer.write(ownLine ? `${container.first.trimEnd()}\n` : container.first);
        container.first = '';
      } else if (!ownLine) writer.write(container.rest);
    }
  }

  function indentation(): string {
    return containers.map((container) => (container.kind === 'item' ? container.rest : '')).join('');
  }

  function preformatted(block: Token, text: string, language: string): void {
    if (text.trim() === '') return;
    begin(block, true);
    const start = writer.length();
    writer.write(text);
    writer.mark(start, { kind: 'pre', language });
  }

  for (let index = 0; index < tokens.length; index += 1) {
    const token = tokens[index];
    if (token === undefined) continue;
    switch (token.type) {
      case 'bullet_list_open':
        lists.push({ next: null });
        break;
      case 'ordered_list_open':
        lists.push({ next: Number(token.attrGet('start') ?? 1) });
        break;
      case 'bullet_list_close':
      case 'ordered_list_close':
        lists.pop();
        break;
      case 'list_item_open':
        containers.push(openItem(lists, token, tokens[index + 2]));
        break;
      case 'list_item_close': {
        const item = containers.at(-1);
        if (item?.kind === 'item' && item.first !== '') begin(token);
        containers.pop();
        break;
      }
      case 'blockquote_open':
        containers.push({ kind: 'quote', start: null });
        break;
      case 'blockquote_close': {
        const quote = containers.pop();
        if (quote?.kind === 'quote' && quote.start !== null) writer.mark(quote.start, { kind: 'quote' });
        break;
      }
      case 'paragraph_open': {
        const children = tokens[index + 1]?.children ?? [];
        const formula = children.length === 1 ? formulaOf(children[0]) : null;
        if (formula?.isDisplay === true) preformatted(token, formula.text, '');
        const isDone = formula?.isDisplay === true || isSpace(children);
        // The paragraph's inline content and end.
        if (isDone) index += 2;
        else begin(token);
        break;
      }
      case 'heading_open':
        begin(token);
        break;
      case 'inline': {
        const write = tokens[index - 1]?.type === 'heading_open' ? writeBold : writeInline;
        write(writer, token.children ?? [], `\n${indentation()}`);
        break;
      }
      case 'fence':
      case 'code_block':
        preformatted(token, token.content.replace(/\n$/, ''), languageOf(token.info));
        break;
      case 'table_open': {
        const first = index;
        while (tokens[index] !== undefined && tokens[index]?.type !== 'table_close') index += 1;
        const table = tableOf(tokens.slice(first, index));
        const aligned = tableText(table);
        if (table.rows.length < 2 || lineWidth(aligned) <= tableWidth) {
          preformatted(token, aligned, '');
        } else {
          begin(token);
          writeRows(writer, table, `\n${indentation()}`);
        }
        break;
      }
      case 'hr':
        begin(token);
        writer.write(RULE);
        break;
    }
  }
  return writer.done();
}

/** Only line breaks: the spacing of blocks already covers it. */
function isSpace(children: Token[]): boolean {
  return children.length > 0 && children.every(({ type }) => isBreak(type));
}

function openItem(lists: Lists, item: Token, content: Token | undefined): Container {
  const list = lists.at(-1);
  let first = BULLETS[Math.min(lists.length, BULLETS.length) - 1] ?? '';
  if (list !== undefined && list.next !== null) {
    first = `${list.next}${item.markup} `;
    list.next += 1;
  }
  const rest = ' '.repeat(Math.min(first.length, 4));
  return { kind: 'item', first: withTask(first, list?.next === null, content), rest };
}

/** `[ ]` and `[x]` at the start of an item become a box in place of the bullet. */
function withTask(bullet: string, replaces: boolean, content: Token | undefined): string {
  const text = content?.type === 'inline' ? content.children?.[0] : undefined;
  const task = text?.type === 'text' ? TASK.exec(text.content) : null;
  if (text === undefined || task === null) return bullet;
  text.content = text.content.slice(task[0].length);
  return `${replaces ? '' : bullet}${task[1] === ' ' ? '☐' : '☑'} `;
}

/** First word after the fence. */
function languageOf(info: string): string {
  return info.trim().split(/\s/, 1)[0]?.slice(0, 40) ?? '';
}
