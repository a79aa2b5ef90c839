/**
 * A part as lines, for platforms that have their markup within the text: each line in runs with the same styles
 * throughout, and blocks of code between the lines. Emphasis that crosses the end of a line is on both lines, since not
 * every platform lets it go on.
 */
import type { Mark, Part } from '../../core/channel.js';
import { addSpaced, isBlank, type Run, type Style } from './runs.js';
import { endOf, spansOf } from './spans.js';

export type Block =
  | { kind: 'line'; quoted: boolean; runs: Run[] }
  | { kind: 'pre'; language: string; text: string };

/** A line that a quote touches is quoted whole; a block of code is never within a quote. */
export function blocksOf(part: Part): Block[] {
  const { text } = part;
  const blocks: Block[] = [];
  let runs: Run[] = [];
  let quoted = false;
  /** Where the last block of code ended: the line end right after it belongs to it. */
  let fenced = -1;

  function endLine(): void {
    if (!quoted) endQuote(blocks);
    const goesOn = !isBlank(runs) || isQuoted(blocks.at(-1));
    blocks.push({ kind: 'line', quoted: quoted && goesOn, runs });
    runs = [];
    quoted = false;
  }

  for (const { start, end, marks } of spansOf(part)) {
    if (start < fenced) continue;
    const pre = marks.find((mark) => mark.kind === 'pre');
    if (pre !== undefined) {
      if (runs.length > 0) endLine();
      endQuote(blocks);
      fenced = Math.min(endOf(pre), text.length);
      blocks.push({ kind: 'pre', language: pre.language, text: text.slice(start, fenced) });
      continue;
    }
    const style = marks.length === 0 ? PLAIN : styleOf(marks);
    const inQuote = marks.some((mark) => mark.kind === 'quote');
    for (let at = start; at < end; ) {
      const found = text.indexOf('\n', at);
      const to = found === -1 || found > end ? end : found;
      const shown = text.slice(at, to);
      addSpaced(runs, style, shown);
      const endsHere = to < end && to !== fenced;
      // An empty line in the middle of a quote belongs to it, too.
      if (inQuote && (shown.trim() !== '' || (endsHere && isBlank(runs)))) quoted = true;
      if (endsHere) endLine();
      at = to + 1;
    }
  }
  if (runs.length > 0) endLine();
  return blocks;
}

function isQuoted(block: Block | undefined): boolean {
  return block?.kind === 'line' && block.quoted;
}

/** Empty lines at the end of a quote do not belong to it. */
function endQuote(blocks: Block[]): void {
  for (let at = blocks.length - 1; at >= 0; at -= 1) {
    const block = blocks[at];
    if (block?.kind !== 'line' || !block.quoted || !isBlank(block.runs)) return;
    block.quoted = false;
  }
}

const PLAIN: Omit<Run, 'text'> = { kind: 'text', styles: [], url: '' };

function styleOf(marks: readonly Mark[]): Omit<Run, 'text'> {
  let kind: Run['kind'] = 'text';
  let url = '';
  const styles: Style[] = [];
  for (const mark of marks) {
    if (mark.kind === 'code') kind = 'code';
    else if (mark.kind !== 'quote' && mark.kind !== 'pre' && !styles.includes(mark.kind)) {
      styles.push(mark.kind);
      if (mark.kind === 'link') url = mark.url;
    }
  }
  return { kind, styles, url };
}
