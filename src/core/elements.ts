/**
 * The elements in which the gateway shows a model what people, models, files and tools said, and what keeps that text from
 * opening or closing one: such a `<` becomes an entity. Everything else stands as it was written, so that code reaches the
 * model as code. Whatever the gateway did not write itself stands in an element (or a fence, `fenced`): nothing
 * outside of them is anybody's words.
 */
import { lookOf } from './likeness.js';

/** Every element that appears in a prompt. */
const NAMES = [
  'user_message',
  'forwarded',
  'in_reply_to',
  'event',
  'task_completed',
  'recalled',
  'memory_now',
  'summary',
  'summary_so_far',
  'conversation',
  'own_message',
  'first_message',
  'tool_result',
  'possible_speaker',
] as const;

export type ElementName = (typeof NAMES)[number];

/** The attribute of an element that holds words from outside. */
export const UNTRUSTED = { untrusted: 'yes' };

/** What opens a tag, and what it becomes: its forms of other widths look the same. */
const ENTITIES: Record<string, string> = { '<': '&lt;', '＜': '&#xFF1C;', '﹤': '&#xFE64;' };
const SIGNS = new Map(Object.entries(ENTITIES).map(([sign, entity]) => [entity, sign]));
const OPENING = /[<＜﹤]/gu;
const OPENING_ENTITY = /&(?:lt|#xFF1C|#xFE64);/gu;

/** `attributes` in order; `words` is escaped here. */
export function element(name: ElementName, attributes: Record<string, string>, words: string): string {
  return elementAround(name, attributes, escaped(words));
}

/** One whose text stands on lines of its own. */
export function block(name: ElementName, words: string, attributes: Record<string, string> = {}): string {
  return elementAround(name, attributes, `\n${escaped(words)}\n`);
}

/** One that holds others: `inside` was made by `element`. */
export function elementAround(name: ElementName, attributes: Record<string, string>, inside: string): string {
  const own = Object.entries(attributes).map(([key, value]) => ` ${key}="${nameInPrompt(value)}"`);
  return `<${name}${own.join('')}>${inside}</${name}>`;
}

/** A text that stands inside one of the elements. */
export function escaped(words: string): string {
  return words.replaceAll(OPENING, (sign, at: number) =>
    readsAsTag(words, at + sign.length) ? (ENTITIES[sign] ?? sign) : sign,
  );
}

/** The text as it was written; the inverse of `escaped` but for a text that contained such an entity already. */
export function unescaped(words: string): string {
  return words.replaceAll(OPENING_ENTITY, (entity, at: number) =>
    readsAsTag(words, at + entity.length) ? (SIGNS.get(entity) ?? entity) : entity,
  );
}

/** What a model writes anew of a text that it was shown: lines of it as they were before `escaped`, others by `unescaped`. */
export function writtenBack(words: string, original: string): string {
  const lines = original.split('\n');
  const shown = new Map(
    escaped(original)
      .split('\n')
      .map((line, n) => [line, lines[n] ?? '']),
  );
  return words
    .split('\n')
    .map((line) => shown.get(line) ?? unescaped(line))
    .join('\n');
}

/** Somebody's or something's name, in an attribute or a sentence: one line that opens and closes nothing. */
export function nameInPrompt(name: string): string {
  return escaped(name)
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll(/[\p{Zl}\p{Zp}\p{Cc}]+/gu, ' ');
}

const LOOKS = NAMES.map(lookOf);
/** What may stand between the sign and the name, for a reader who is as lenient as a model. */
const BEFORE_NAME = /[\s\p{C}\p{M}\p{DI}/\\／∕⁄⧸]/u;
const UNSEEN = /\p{C}/u;
const OF_NAME = /^[\p{L}\p{N}_.:-]/u;

/**
 * Whether what follows a `<` reads as the name of an element: capitals, signs that nobody sees and letters that look like
 * its own make no difference.
 */
function readsAsTag(text: string, from: number): boolean {
  let look = '';
  for (let at = from; at < text.length; ) {
    const character = String.fromCodePoint(text.codePointAt(at) ?? 0);
    at += character.length;
    if (look === '' && BEFORE_NAME.test(character)) continue;
    const seen = UNSEEN.test(character) ? '' : lookOf(character.toLowerCase());
    if (!OF_NAME.test(seen)) {
      // The name ends here; or it goes on behind what nobody sees.
      if (LOOKS.includes(look)) return true;
      if (seen !== '') return false;
    }
    look += seen;
    if (!LOOKS.some((name) => name.startsWith(look))) return false;
  }
  return LOOKS.includes(look);
}

/** Text of files in a prompt: in a fence longer than any fence inside it, so that the text cannot end its own block, nor begin an element. */
export function fenced(text: string): string {
  const longest = Math.max(2, ...Array.from(text.matchAll(/`+/g), (run) => run[0].length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}text\n${escaped(text)}\n${fence}`;
}
