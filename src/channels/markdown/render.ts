/** Parsed Markdown as text with marks. A table becomes aligned columns or, on narrow screens, row after row. */
import type { Token } from 'markdown-it';
import type { Part } from '../../core/channel.js';
import { graphemes } from './cut.js';
import { inlineText, isBreak, Writer, writeBold, writeInline } from './inline.js';

interface Table {
  opening: Token;
  /** The cells of each row, as parsed; the first row is the header. */
  rows: Token[][][];
  /** Style of each column, such as `text-align:right`. */
  alignments: string[];
}

/** In columns. A longer cell only shifts its own row, instead of widening every other one. */
const MAX_PADDING = 40;

/** Aligned columns. */
function tableText({ rows, alignments }: Table): string {
  const cells = rows.map((row) => withoutEmptyEnd(row.map((cell) => inlineText(cell, '\n'))));
  const columns = alignments.map(() => 1);
  for (const row of cells) {
    for (const [column, cell] of row.entries()) {
      const columnsUsed = lineWidth(cell);
      if (columnsUsed <= MAX_PADDING) columns[column] = Math.max(columns[column] ?? 1, columnsUsed);
    }
  }
  const [head = [], ...others] = cells.map((row) => {
    const texts = row.map((cell) => cell.split('\n'));
    const height = texts.reduce((most, lines) => Math.max(most, lines.length), 1);
    return Array.from({ length: height }, (_, line) => {
      const padded = texts.map((lines, column) =>
        pad(lines[line] ?? '', columns[column] ?? 0, alignments[column] ?? ''),
      );
      return padded.join(' | ').trimEnd();
    });
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
    for (const [column, cell] of row.entries()) {
      if (inlineText(cell) === '') continue;
      writer.text += between;
      between = newline;
      const title = header[column] ?? [];
      if (inlineText(title) !== '') {
        writeTitle(writer, title, ' ');
        writer.text += ': ';
      }
      writeInline(writer, cell, newline);
    }
    if (between !== '') between = `\n${newline}`;
  }
}

/** Drops the empty cells with which the parser pads short rows. */
function withoutEmptyEnd(row: string[]): string[] {
  return row.slice(0, row.findLastIndex((cell) => cell !== '') + 1);
}

function pad(text: string, columns: number, alignment: string): string {
  const missing = Math.max(0, columns - width(text));
  const before = alignment.endsWith('right') ? missing : alignment.endsWith('center') ? missing >> 1 : 0;
  return ' '.repeat(before) + text + ' '.repeat(missing - before);
}

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

export function render(tokens: Token[], tableWidth = Number.POSITIVE_INFINITY): Part {
  const page = new Page(tableWidth);
  for (const [at, token] of tokens.entries()) page.take(token, tokens[at - 1], tokens[at + 2]);
  return page.done();
}

class Page extends Writer {
  readonly #containers: Container[] = [];
  /** The open lists; of a numbered one its next number. */
  readonly #lists: (number | null)[] = [];
  #table: Table | null = null;
  #lastLine = 0;

  constructor(readonly tableWidth: number) {
    super();
  }

  /** `item`: the content of a list item that begins. */
  take(token: Token, before: Token | undefined, item: Token | undefined): void {
    switch (token.type) {
      case 'bullet_list_open':
        this.#lists.push(null);
        break;
      case 'ordered_list_open':
        this.#lists.push(Number(token.attrGet('start') ?? 1));
        break;
      case 'bullet_list_close':
      case 'ordered_list_close':
        this.#lists.pop();
        break;
      case 'list_item_open':
        this.#containers.push(openItem(this.#lists, token, item));
        break;
      case 'blockquote_open':
        this.#containers.push({ kind: 'quote', start: null });
        break;
      case 'list_item_close':
      case 'blockquote_close':
        this.#close(token);
        break;
      case 'table_open':
        this.#table = { opening: token, rows: [], alignments: [] };
        break;
      case 'tr_open':
        this.#table?.rows.push([]);
        break;
      case 'th_open':
        this.#table?.alignments.push(String(token.attrGet('style') ?? ''));
        break;
      case 'table_close':
        if (this.#table !== null) this.#writeTable(this.#table);
        this.#table = null;
        break;
      case 'inline':
        if (this.#table === null) this.#writeText(before ?? token, token.children ?? []);
        else this.#table.rows.at(-1)?.push(token.children ?? []);
        break;
      case 'fence':
      case 'code_block':
        this.#writeCode(token, token.content.replace(/\n$/, ''), languageOf(token.info));
        break;
      case 'hr':
        this.#begin(token);
        this.text += RULE;
        break;
    }
  }

  /** Begins a text block: the space before it, then the bullets and indentation of its containers. */
  #begin(block: Token, ownLine = false): void {
    const [from, to] = block.map ?? [this.#lastLine, this.#lastLine];
    if (this.text !== '') this.text += from > this.#lastLine ? '\n\n' : '\n';
    this.#lastLine = Math.max(to, from + 1);
    for (const container of this.#containers) {
      if (container.kind === 'quote') container.start ??= this.text.length;
      else if (container.first !== '') {
        this.text += ownLine ? `${container.first.trimEnd()}\n` : container.first;
        container.first = '';
      } else if (!ownLine) this.text += container.rest;
    }
  }

  /** Ends a quote or a list item; an empty item still shows. */
  #close(token: Token): void {
    const container = this.#containers.at(-1);
    if (container?.kind === 'item' && container.first !== '') this.#begin(token);
    if (container?.kind === 'quote' && container.start !== null)
      this.mark(container.start, { kind: 'quote' });
    this.#containers.pop();
  }

  /** A line end within a block, with the indentation of its lists. */
  #newline(): string {
    return this.#containers.reduce((line, each) => (each.kind === 'item' ? line + each.rest : line), '\n');
  }

  #writeText(block: Token, children: Token[]): void {
    const isHeading = block.type === 'heading_open';
    const [first] = children;
    if (!isHeading && first?.type === 'display_math' && children.length === 1) {
      this.#writeCode(block, first.content, '');
    } else if (isHeading || !children.every(isBreak)) {
      this.#begin(block);
      (isHeading ? writeBold : writeInline)(this, children, this.#newline());
    }
  }

  #writeCode(block: Token, code: string, language: string): void {
    if (code.trim() === '') return;
    this.#begin(block, true);
    const start = this.text.length;
    this.text += code;
    this.mark(start, { kind: 'pre', language });
  }

  #writeTable(table: Table): void {
    const aligned = tableText(table);
    if (table.rows.length < 2 || lineWidth(aligned) <= this.tableWidth) {
      this.#writeCode(table.opening, aligned, '');
    } else {
      this.#begin(table.opening);
      writeRows(this, table, this.#newline());
    }
  }
}

function openItem(lists: (number | null)[], { markup }: Token, content: Token | undefined): Container {
  const next = lists.at(-1) ?? null;
  const bullet = next === null ? BULLETS[Math.min(lists.length, BULLETS.length) - 1] : `${next}${markup} `;
  if (next !== null) lists[lists.length - 1] = next + 1;
  const first = bullet ?? '';
  const rest = ' '.repeat(Math.min(first.length, 4));
  const box = boxOf(content);
  if (box === null) return { kind: 'item', first, rest };
  return { kind: 'item', first: next === null ? box : first + box, rest };
}

/** `[ ]` and `[x]` at the start of an item become a box in place of the bullet. */
function boxOf(content: Token | undefined): string | null {
  const text = content?.type === 'inline' ? content.children?.[0] : undefined;
  const task = text?.type === 'text' ? TASK.exec(text.content) : null;
  if (text === undefined || task === null) return null;
  text.content = text.content.slice(task[0].length);
  return task[1] === ' ' ? '☐ ' : '☑ ';
}

/** First word after the fence. */
function languageOf(info: string): string {
  return info.trim().split(/\s/, 1)[0]?.slice(0, 40) ?? '';
}
