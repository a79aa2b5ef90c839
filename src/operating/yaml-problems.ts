/**
 * What is wrong with a file that is no YAML, in words of our own: those of the library quote the file, and secrets
 * stand in it. And where it is wrong: at which key.
 */
import { type Document, isAlias, isMap, isPair, isScalar, isSeq, type YAMLError } from 'yaml';

const QUOTES = 'text that begins with such a sign must stand in quotes';

const WORDS: Record<YAMLError['code'], string> = {
  ALIAS_PROPS: `an alias (*) can have no tag (!) and no anchor (&); ${QUOTES}`,
  BAD_ALIAS: `an anchor (&) or an alias (*) has no name, or one that ends in a colon; ${QUOTES}`,
  BAD_COLLECTION_TYPE: `a tag (!) does not fit what stands behind it; ${QUOTES}`,
  BAD_DIRECTIVE: `a line that begins with % is no directive of YAML; ${QUOTES}`,
  BAD_DQ_ESCAPE:
    'a backslash in double quotes begins no escape that YAML knows; single quotes take it as it is',
  BAD_INDENT: 'the indentation does not fit the lines above, or a bracket is not closed',
  BAD_PROP_ORDER: `a tag (!) or an anchor (&) stands before a sign that it should stand behind; ${QUOTES}`,
  BAD_SCALAR_START: `a value cannot begin with @, % or a backtick; ${QUOTES}`,
  BLOCK_AS_IMPLICIT_KEY:
    'a second key stands on one line; a value with a colon and a space in it must stand in quotes',
  BLOCK_IN_FLOW: 'within { } and [ ] a list or keys of several lines cannot stand',
  DUPLICATE_KEY: 'the key stands there twice; take one of them away',
  IMPOSSIBLE: 'it cannot be read as YAML',
  KEY_OVER_1024_CHARS: 'a key is longer than 1024 characters',
  MISSING_CHAR:
    'something is missing: a closing quote, a bracket, a comma, a space, or the colon behind a key',
  MULTILINE_IMPLICIT_KEY:
    'a key is not on one line with its colon; a value of several lines must stand in quotes',
  MULTIPLE_ANCHORS: `a value has two anchors (&); ${QUOTES}`,
  MULTIPLE_DOCS: 'a second document begins; everything must stand before the line ---',
  MULTIPLE_TAGS: `a value has two tags (!); ${QUOTES}`,
  NON_STRING_KEY: 'a key must be a text, and no alias (*), list or keys of its own',
  RESOURCE_EXHAUSTION: 'it is nested too deep',
  TAB_AS_INDENT: 'a tab stands in the indentation; expected spaces',
  TAG_RESOLVE_FAILED: `a tag (!) is not known, or does not fit its value; ${QUOTES}`,
  UNEXPECTED_TOKEN:
    'something stands where it cannot; text with brackets, commas or quotes in it must stand in quotes',
};

const UNKNOWN_ALIAS = `an alias (*) stands for no anchor (&) above it; ${QUOTES}`;
const CIRCLE = 'an alias (*) stands within what it stands for; write the value out';
const NO_MERGE = 'what is merged with << must be keys and values, or aliases (*) of such';
/** Of what cannot be laid to one of them, as where they stand for millions of values. */
export const ALIASES = 'its anchors (&) and aliases (*) cannot be resolved; write the values out';

export function wordsOf(problem: YAMLError): string {
  return WORDS[problem.code];
}

/** A key, or an item of a list. */
interface Place {
  path: string[];
  begins: number;
  /** The end of the value. */
  ends: number;
  /** null: an item has none. */
  key: unknown;
  value: unknown;
  /** The nodes above, from the outermost on. */
  within: unknown[];
}

/** In the order in which they stand there. */
export function placesIn(document: Document): Place[] {
  return below(document.contents, [], []);
}

/** The aliases that make it impossible to use what is YAML so far. */
export function strangeAliases(document: Document): (Place & { message: string })[] {
  const anchored = new Map<string, unknown>();
  const anchor = (node: unknown) => {
    if ((isMap(node) || isSeq(node) || isScalar(node)) && node.anchor) anchored.set(node.anchor, node);
  };
  const resolved = (node: unknown) => (isAlias(node) ? anchored.get(node.source) : node);
  const wrongWith = ({ path, value, within }: Place): string | null => {
    const meant = resolved(value);
    if (meant === undefined) return UNKNOWN_ALIAS;
    if (within.includes(meant)) return CIRCLE;
    if (path.at(-1) !== '<<') return null;
    const merged = isSeq(meant) ? meant.items : [meant];
    return merged.every((source) => isMap(resolved(source))) ? null : NO_MERGE;
  };
  anchor(document.contents);
  // An alias stands for what has the anchor last before it.
  return placesIn(document).flatMap((place) => {
    anchor(place.key);
    const message = wrongWith(place);
    anchor(place.value);
    return message === null ? [] : [{ ...place, message }];
  });
}

function below(node: unknown, path: string[], above: unknown[]): Place[] {
  const items: unknown[] = isMap(node) || isSeq(node) ? node.items : [];
  const within = [...above, node];
  return items.flatMap((item, index) => {
    const [key, value] = isPair(item) ? [item.key, item.value] : [null, item];
    const inner = [...path, isScalar(key) ? String(key.value) : String(index)];
    const range = rangeOf(value);
    const begins = rangeOf(key)?.[0] ?? range?.[0];
    const place = begins !== undefined && {
      path: inner,
      begins,
      ends: range?.[1] ?? begins,
      key,
      value,
      within,
    };
    return [...(place ? [place] : []), ...below(value, inner, within)];
  });
}

function rangeOf(node: unknown) {
  return isMap(node) || isSeq(node) || isScalar(node) || isAlias(node) ? node.range : null;
}
