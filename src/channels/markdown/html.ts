/**
 * A part as HTML, for the board. Pure, and safe to put into a page as it is: what the model wrote is text, whatever
 * it is, and links lead nowhere but to the web, to mail and to Telegram.
 */
import type { Part } from '../../core/channel.js';
import { isLinkable } from './address.js';
import { type Block, blocksOf, nest, type Run } from './lines.js';

const TAGS = { bold: 'strong', italic: 'em', strike: 's' };

export function htmlText(part: Part): string {
  const written: string[] = [];
  let quoted = false;
  let paragraph: string[] = [];

  function endParagraph(): void {
    if (paragraph.length > 0) written.push(`<p>${paragraph.join('<br>\n')}</p>`);
    paragraph = [];
  }

  function quote(inQuote: boolean): void {
    if (inQuote === quoted) return;
    endParagraph();
    written.push(inQuote ? '<blockquote>' : '</blockquote>');
    quoted = inQuote;
  }

  for (const block of blocksOf(part)) {
    quote(block.kind === 'line' && block.quoted);
    if (block.kind === 'pre') {
      endParagraph();
      written.push(codeBlock(block));
    } else if (block.runs.every((run) => run.kind === 'space')) {
      endParagraph();
    } else {
      paragraph.push(lineOf(block.runs));
    }
  }
  quote(false);
  endParagraph();
  return written.join('\n');
}

function codeBlock({ language, text }: Extract<Block, { kind: 'pre' }>): string {
  const named = language === '' ? '' : ` class="language-${escaped(language)}"`;
  // A page leaves out the first line end in a `pre`: this one, and not one of the code.
  return `<pre>\n<code${named}>${escaped(text)}</code></pre>`;
}

function lineOf(runs: readonly Run[]): string {
  let line = '';
  nest(runs, {
    open(style, { url }) {
      if (style !== 'link') line += `<${TAGS[style]}>`;
      else if (isLinkable(url)) line += anchor(url);
    },
    close(style, { url }) {
      if (style !== 'link') line += `</${TAGS[style]}>`;
      else if (isLinkable(url)) line += '</a>';
    },
    text(run) {
      const isLabel = run.styles.includes('link');
      if (run.kind === 'code') line += `<code>${escaped(run.text)}</code>`;
      else line += isLabel ? words(run.text, line === '') : withLinks(run.text, line === '');
    },
  });
  return line;
}

function anchor(url: string): string {
  return `<a href="${escaped(url)}" target="_blank" rel="noopener noreferrer nofollow">`;
}

/** Addresses that stand in the text. */
function withLinks(text: string, isFront: boolean): string {
  if (!text.includes('://')) return words(text, isFront);
  let written = '';
  let from = 0;
  for (const { 0: address, index } of text.matchAll(/https?:\/\/[^\s<>"]*[^\s<>".,:;!?'()\]]/g)) {
    written += `${words(text.slice(from, index), isFront && from === 0)}${anchor(address)}${escaped(address)}</a>`;
    from = index + address.length;
  }
  return written + words(text.slice(from), isFront && from === 0);
}

/** A page shows one space of many, and none at the beginning of a line. */
function words(text: string, isFront: boolean): string {
  const spaced = escaped(text).replace(/ (?= )/g, '&nbsp;');
  return isFront ? spaced.replace(/^ /, '&nbsp;') : spaced;
}

const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (sign) => ENTITIES[sign] ?? sign);
}
