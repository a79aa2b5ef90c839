/** The inside of a paragraph, heading or table cell: emphasis, code, links, images, line breaks. */
import type { Token } from 'markdown-it';
import { decoded, mayBeHidden } from './address.js';
import { createWriter, type Writer } from './writer.js';

function emphasisOf({ tag }: Token): 'bold' | 'italic' | 'strike' {
  return tag === 'strong' ? 'bold' : tag === 'em' ? 'italic' : 'strike';
}

/** Writes with `newline` where a line ends: it carries the indentation of a list. */
export function writeInline(writer: Writer, tokens: Token[], newline: string): void {
  /** Where each emphasis and link that is open began. */
  const starts: number[] = [];
  const links: string[] = [];

  for (const token of tokens) {
    switch (token.type) {
      case 'softbreak':
      case 'hardbreak':
        writer.write(newline);
        break;
      case 'code_inline': {
        const start = writer.length();
        writer.write(token.content);
        writer.mark(start, { kind: 'code' });
        break;
      }
      case 'image':
        writeImage(writer, token);
        break;
      case 'link_open':
        starts.push(writer.length());
        // The text of an autolink is its address already.
        links.push(token.info === 'auto' ? '' : String(token.attrGet('href') ?? ''));
        writer.enter('link');
        break;
      case 'link_close': {
        const [start, url] = [starts.pop() ?? 0, links.pop() ?? ''];
        writer.leave('link');
        if (url !== '') writeTarget(writer, start, url);
        break;
      }
      case 'strong_open':
      case 'em_open':
      case 's_open':
        starts.push(writer.length());
        writer.enter(emphasisOf(token));
        break;
      case 'strong_close':
      case 'em_close':
      case 's_close': {
        const start = starts.pop() ?? 0;
        const kind = emphasisOf(token);
        if (writer.leave(kind)) writer.mark(start, { kind });
        break;
      }
      default:
        writer.write(token.content);
    }
  }
}

/** The same in bold: a heading, the title of a column. */
export function writeBold(writer: Writer, tokens: Token[], newline: string): void {
  const start = writer.length();
  writer.enter('bold');
  writeInline(writer, tokens, newline);
  if (writer.leave('bold')) writer.mark(start, { kind: 'bold' });
}

/** As text alone: marks are left out, and an address stands in brackets behind its label. */
export function inlineText(tokens: Token[]): string {
  const writer = createWriter();
  writeInline(writer, tokens, ' ');
  const { text, marks } = writer.done();
  let shown = '';
  let from = 0;
  for (const mark of marks) {
    if (mark.kind !== 'link') continue;
    const end = mark.offset + mark.length;
    shown += `${text.slice(from, end)} (${mark.url})`;
    from = end;
  }
  return (shown + text.slice(from)).trim();
}

/** Its label, as a link to it. */
function writeImage(writer: Writer, image: Token): void {
  const start = writer.length();
  writer.write(inlineText(image.children ?? []));
  writeTarget(writer, start, String(image.attrGet('src') ?? ''));
}

/** Makes what was written since `start` lead to `url`, or shows the address where that cannot be. */
function writeTarget(writer: Writer, start: number, url: string): void {
  const label = writer.since(start).trim();
  const shown = decoded(url);
  if (label === '') writer.write(shown);
  if (mayBeHidden(url)) {
    if (label !== shown && !writer.isInside('link')) writer.mark(start, { kind: 'link', url });
  } else if (label !== '' && label !== shown && shown !== '') {
    writer.write(` (${shown})`);
  }
}
