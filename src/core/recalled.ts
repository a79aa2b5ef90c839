/** Formats recalled pieces as lines for a model: in a turn's prompt and in answers of `search_memory`. */
import { cutAt } from './cut.js';
import type { Zone } from './dates.js';
import { looksLike } from './likeness.js';
import type { Recalled } from './recall.js';

/** Whether words from outside are in the line of a piece, or in what it answers. */
export function isFromOutside({ outside, answers }: Recalled): boolean {
  return outside === true || answers?.outside === true;
}

/** Limits one line, so that it cannot fill the whole answer. */
const MOST_CHARS = 1_000;

/** `- 2026-03-04 10:15, Ann: text`. Always a single line, so that no text can pose as another entry. */
export function recalledLine({ text, excerpt, at, source }: Recalled, zone: Zone): string {
  const line = oneLine(excerpt ?? text);
  const words = line.length <= MOST_CHARS ? line : `${cutAt(line, MOST_CHARS)} …`;
  const when = at === null ? '' : `${zone.time(at)}, `;
  switch (source.kind) {
    case 'message':
      return `- ${when}${source.own ? OWN : authorIn(source.author)}: ${words}`;
    case 'archive':
      return `- ${when}${authorIn(source.author)}: ${words} (${source.file})`;
    case 'file':
      return `- ${words} (${source.file}${source.tier === null ? '' : `, tier ${source.tier}`})`;
  }
}

const OWN = 'you';

/** A name ends at the colon; nobody else is called as the persona is here, whatever they call themselves. */
function authorIn(name: string): string {
  const line = oneLine(name.replaceAll(':', ' '));
  return looksLike(line, OWN) ? `somebody called “${line}”` : line;
}

function oneLine(text: string): string {
  return text.replaceAll(/[\s\p{Cc}]+/gu, ' ').trim();
}
