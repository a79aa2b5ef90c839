/** Our own messages for YAML errors, with the key at fault: the library's quote the file, and so may reveal secrets. */
import { type Document, isAlias, isMap, isNode, isPair, isScalar, isSeq, type YAMLError } from 'yaml';

export interface YamlFault {
  line: number | null;
  /** The keys down to the value; empty for the whole file. */
  path: string[];
  message: string;
  /** The YAML is malformed, so `path` may hold anything, even a secret. */
  guessed?: true;
}

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
/** For a fault that cannot be traced to one alias, such as an expansion to millions of values. */
const ALIASES = 'its anchors (&) and aliases (*) cannot be resolved; write the values out';

/** A key with its value, or a list item. */
interface YamlPlace {
  path: string[];
  begins: number;
  /** The end of the value. */
  ends: number;
  /** null for a list item. */
  key: unknown;
  value: unknown;
  /** The parent nodes, outermost first. */
  within: unknown[];
}

/** The errors of the parser. */
export function problemsIn(
  document: Document.Parsed,
  source: string,
  lineAt: (offset: number) => number,
): YamlFault[] {
  const problems = [...document.errors, ...document.warnings];
  const places = problems.length > 0 ? below(document.contents, [], []) : [];
  const faults = problems.map((problem): YamlFault => {
    const isAtEnd = problem.pos[0] >= source.length;
    const offset = isAtEnd ? source.length - 1 : problem.pos[0];
    const place = places.findLast(
      ({ begins, ends }) => begins <= offset && (offset < ends || lineAt(begins) === lineAt(offset)),
    );
    // An unclosed value ends with the file; its beginning is the better place to report.
    const line = lineAt(isAtEnd && place ? place.begins : offset);
    return { line, path: place?.path ?? [], message: WORDS[problem.code], guessed: true };
  });
  // One wrong character may cause several follow-up errors.
  return faults.filter(
    ({ line, message }, n) =>
      faults.findIndex((fault) => fault.line === line && fault.message === message) === n,
  );
}

/** Aliases that make valid YAML unusable. */
export function aliasesIn(document: Document.Parsed, lineAt: (offset: number) => number): YamlFault[] {
  const anchored = new Map<string, unknown>();
  const anchor = (node: unknown) => {
    if (isNode(node) && !isAlias(node) && node.anchor) anchored.set(node.anchor, node);
  };
  const resolved = (node: unknown) => (isAlias(node) ? anchored.get(node.source) : node);
  const wrongWith = ({ path, value, within }: YamlPlace): string | null => {
    const meant = resolved(value);
    if (meant === undefined) return UNKNOWN_ALIAS;
    if (within.includes(meant)) return CIRCLE;
    if (path.at(-1) !== '<<') return null;
    const merged = isSeq(meant) ? meant.items : [meant];
    return merged.every((source) => isMap(resolved(source))) ? null : NO_MERGE;
  };
  const faults: YamlFault[] = [];
  anchor(document.contents);
  // An alias refers to the latest anchor of that name before it.
  for (const place of below(document.contents, [], [])) {
    anchor(place.key);
    const message = wrongWith(place);
    anchor(place.value);
    if (message !== null)
      faults.push({ line: lineAt(place.begins), path: place.path, message, guessed: true });
  }
  return faults.length > 0 ? faults : [{ line: null, path: [], message: ALIASES, guessed: true }];
}

/** In document order. */
function below(node: unknown, path: string[], above: unknown[]): YamlPlace[] {
  const items: unknown[] = isMap(node) || isSeq(node) ? node.items : [];
  const within = [...above, node];
  return items.flatMap((item, index) => {
    const [key, value] = isPair(item) ? [item.key, item.value] : [null, item];
    const inner = [...path, isScalar(key) ? String(key.value) : String(index)];
    const range = isNode(value) ? value.range : null;
    const begins = isNode(key) ? key.range?.[0] : range?.[0];
    const deeper = below(value, inner, within);
    if (begins === undefined) return deeper;
    return [{ path: inner, begins, ends: range?.[1] ?? begins, key, value, within }, ...deeper];
  });
}
