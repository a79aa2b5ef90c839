/**
 * markdown-it's tokens to text with marks. The tokens are a flat list, so nothing here descends. Blank lines
 * between blocks stand where they stood in the source.
 */
import type { Token } from 'markdown-it';
import type { Part } from '../../core/channel.js';
import { formulaOf } from './formulas.js';
import { isBreak, writeBold, writeInline } from './inline.js';
import { lineWidth, tableOf, tableText, writeRows } from './table.js';
import { createWriter } from './writer.js';

const BULLETS = ['• ', '◦ ', '▪ '];
const RULE = '———';
const TASK = /^\[([ xX])\][ \t]+/;

/** A quote or list item that is open. `first` is an item's bullet until its first line is written. */
type Container = { kind: 'quote'; start: number | null } | { kind: 'item'; first: string; rest: string };

type Lists = { next: number | null }[];

export function render(tokens: Token[], tableWidth = Number.POSITIVE_INFINITY): Part {
  const writer = createWriter();
  const containers: Container[] = [];
  const lists: Lists = [];
  let lastLine = 0;

  /** Begins a block that is text: the space before it, then the bullets and indentation of what it is in. */
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
        // The inside and the end of the paragraph.
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

/** Nothing but line breaks: only the space around blocks, which is there already. */
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

/** `[ ]` and `[x]` at the beginning of an item become a box in place of the bullet. */
function withTask(bullet: string, replaces: boolean, content: Token | undefined): string {
  const text = content?.type === 'inline' ? content.children?.[0] : undefined;
  const task = text?.type === 'text' ? TASK.exec(text.content) : null;
  if (text === undefined || task === null) return bullet;
  text.content = text.content.slice(task[0].length);
  return `${replaces ? '' : bullet}${task[1] === ' ' ? '☐' : '☑'} `;
}

/** The first word after the fence. */
function languageOf(info: string): string {
  return info.trim().split(/\s/, 1)[0]?.slice(0, 40) ?? '';
}
