/** A part for a terminal: marks become colours, control characters are removed. Pure. */
import type { Mark, Part } from '../../core/channel.js';
import { isOwnLabel } from './address.js';
import { endOf, spansOf } from './lines.js';

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
export function terminalText(part: Part): string {
  const { text } = part;
  let painted = '';
  for (const { start, end, marks } of spansOf(part)) {
    const styles = marks.map((mark) => STYLES[mark.kind]);
    painted += styled(styles, withoutControls(text.slice(start, end)));
    for (const mark of marks) if (Math.min(endOf(mark), text.length) === end) painted += address(mark, text);
  }
  return painted;
}

/** A link's address, unless its text already shows it. */
function address(mark: Mark, text: string): string {
  if (mark.kind !== 'link' || isOwnLabel(text.slice(mark.offset, endOf(mark)), mark.url)) return '';
  return styled(['2'], ` (${withoutControls(mark.url)})`);
}

/** Removes control characters except line ends and tabs. */
export function withoutControls(text: string): string {
  return text.replace(/\p{Cc}/gu, (character) => (character === '\n' || character === '\t' ? character : ''));
}

export function styled(styles: string[], text: string): string {
  return styles.length === 0 || text === '' ? text : `\x1b[${styles.join(';')}m${text}\x1b[0m`;
}
