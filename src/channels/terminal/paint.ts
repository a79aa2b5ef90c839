/**
 * Text for a terminal, pure: what a model wrote must not steer the terminal, so control characters go; marks
 * become colours.
 */
import type { Mark, Part } from '../../core/channel.js';

/** Without control characters, save line ends and tabs. */
export function withoutControls(text: string): string {
  return text.replace(/\p{Cc}/gu, (character) => (character === '\n' || character === '\t' ? character : ''));
}

const STYLES: Record<Mark['kind'], string> = {
  bold: '1',
  italic: '3',
  strike: '9',
  code: '36',
  pre: '36',
  quote: '2',
  link: '4',
};

/** The text with its marks as ANSI styles; a link shows its address where the text does not. */
export function paint({ text, marks }: Part): string {
  const waiting = marks.filter((mark) => mark.length > 0).sort((a, b) => a.offset - b.offset);
  const cuts = new Set([0, text.length]);
  for (const mark of waiting) cuts.add(mark.offset).add(endOf(mark));
  const places = [...cuts].sort((a, b) => a - b);

  let painted = '';
  let open: Mark[] = [];
  for (const [index, start] of places.entries()) {
    for (const mark of open) if (endOf(mark) === start) painted += address(mark, text);
    open = open.filter((mark) => endOf(mark) > start);
    while (waiting[0] && waiting[0].offset <= start) open.push(...waiting.splice(0, 1));
    const styles = open.map((mark) => STYLES[mark.kind]);
    painted += styled(styles, withoutControls(text.slice(start, places[index + 1] ?? start)));
  }
  return painted;
}

/** Where a link leads, if its text does not say so itself. */
function address(mark: Mark, text: string): string {
  if (mark.kind !== 'link' || text.slice(mark.offset, endOf(mark)) === mark.url) return '';
  return styled(['2'], ` (${withoutControls(mark.url)})`);
}

function endOf(mark: Mark): number {
  return mark.offset + mark.length;
}

export function styled(styles: string[], text: string): string {
  return styles.length === 0 || text === '' ? text : `\x1b[${styles.join(';')}m${text}\x1b[0m`;
}
