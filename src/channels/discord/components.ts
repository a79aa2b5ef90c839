/** The words of a message that is made of components: Discord gives it no text of its own. Pure, and total. */
import { anything, list, record, text, whole } from '../kit/payload.js';

/** Kinds of components. */
const TEXT = 10;
const PICTURES = 12;
const FILE = 13;
/** Discord nests them three deep. */
const DEEPEST = 10;

const read = record({}, { type: whole, content: text, components: list(anything) });

export function componentsText(components: readonly unknown[]): string {
  return wordsOf(components, 0).join('\n');
}

function wordsOf(components: readonly unknown[], depth: number): string[] {
  if (depth > DEEPEST) return [];
  return components.flatMap((each) => {
    const component = read(each);
    if (component === undefined) return [];
    const { type, content, components: inner = [] } = component;
    if (type === TEXT) return content ? [content] : [];
    if (type === PICTURES) return ['[pictures]'];
    if (type === FILE) return ['[file]'];
    return wordsOf(inner, depth + 1);
  });
}
