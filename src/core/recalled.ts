/** Formats recalled pieces as lines for a model: in a turn's prompt and in answers of `search_memory`. */
import { cutAt } from './cut.js';
import type { Zone } from './dates.js';
import type { Recalled } from './recall.js';

/** Limits one line, so that it cannot fill the whole answer. */
const MOST_CHARS = 1_000;

/** `- 2026-03-04 10:15, Ann: text`. Always a single line, so that no text can pose as another entry. */
export function recalledLine({ text, at, source }: Recalled, zone: Zone): string {
  const line = oneLine(text);
  const words = line.length <= MOST_CHARS ? line : `${cutAt(line, MOST_CHARS)} …`;
  const when = at === null ? '' : `${zone.time(at)}, `;
  switch (source.kind) {
    case 'message':
      return `- ${when}${source.own ? 'you' : oneLine(source.author)}: ${words}`;
    case 'archive':
      return `- ${when}${oneLine(source.author)}: ${words} (${source.file})`;
    case 'file':
      return `- ${words} (${source.file}${source.tier === null ? '' : `, tier ${source.tier}`})`;
  }
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim();
}
