/**
 * The elements in which the gateway shows a model what people said, and what keeps other text from opening or closing
 * one: such a `<` becomes an entity. Everything else stands as it was written, so that code reaches the model as code.
 */

/** Every element that appears in a prompt. */
const NAMES = [
  'user_message',
  'forwarded',
  'in_reply_to',
  'event',
  'recalled',
  'memory_now',
  'summary',
  'summary_so_far',
  'conversation',
] as const;

export type ElementName = (typeof NAMES)[number];

const NAME = `(?:${NAMES.join('|')})(?![\\p{L}\\p{N}_.:-])`;
/** A model reads tags leniently: capitals, spaces and signs that nobody sees make no difference to it. */
const OWN_TAG = new RegExp(`<(?=[\\s\\p{C}/]*${NAME})`, 'giu');
const ENTITY_OF_OWN_TAG = new RegExp(`&lt;(?=[\\s\\p{C}/]*${NAME})`, 'giu');

/** `attributes` in order; `words` is escaped here. */
export function element(name: ElementName, attributes: Record<string, string>, words: string): string {
  return elementAround(name, attributes, escaped(words));
}

/** One that holds another: `inside` was made by `element`. */
export function elementAround(name: ElementName, attributes: Record<string, string>, inside: string): string {
  const own = Object.entries(attributes).map(([key, value]) => ` ${key}="${attribute(value)}"`);
  return `<${name}${own.join('')}>${inside}</${name}>`;
}

/** A text that stands inside one of the elements. */
export function escaped(words: string): string {
  return words.replaceAll(OWN_TAG, '&lt;');
}

/** The text as it was written; the inverse of `escaped` but for a text that contained such an entity already. */
export function unescaped(words: string): string {
  return words.replaceAll(ENTITY_OF_OWN_TAG, '<');
}

function attribute(words: string): string {
  return words
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll(/[\p{Zl}\p{Zp}\p{Cc}]+/gu, ' ');
}
