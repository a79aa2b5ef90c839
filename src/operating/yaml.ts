/**
 * Our own messages for YAML errors, with the key at fault. The library's messages quote the file, and so may reveal
 * secrets.
 */

import { readFileSync, statSync } from 'node:fs';
import {
  type Document,
  isAlias,
  isMap,
  isNode,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  type YAMLError,
} from 'yaml';
import { describe } from '../core/errors.js';

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

function wordsOf(problem: YAMLError): string {
  return WORDS[problem.code];
}

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

/** In document order. */
function placesIn(document: Document): YamlPlace[] {
  return below(document.contents, [], []);
}

/** Aliases that make valid YAML unusable. */
function strangeAliases(document: Document): (YamlPlace & { message: string })[] {
  const anchored = new Map<string, unknown>();
  const anchor = (node: unknown) => {
    if ((isMap(node) || isSeq(node) || isScalar(node)) && node.anchor) anchored.set(node.anchor, node);
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
  anchor(document.contents);
  // An alias refers to the latest anchor of that name before it.
  return placesIn(document).flatMap((place) => {
    anchor(place.key);
    const message = wrongWith(place);
    anchor(place.value);
    return message === null ? [] : [{ ...place, message }];
  });
}

function below(node: unknown, path: string[], above: unknown[]): YamlPlace[] {
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

// Reads a YAML file as plain data for the configuration: replaces `${NAME}` by environment variables and `${file:PATH}`
// by files, and reports every fault with its line. Never quotes the file, because it may contain secrets.

interface YamlFile {
  /** Empty if the file is not YAML. null: a key without a value, or with an empty variable. */
  data: Record<string, unknown>;
  /** `path`: the keys down to the value; empty for the whole file. */
  faults: Fault[];
  /** The environment variables used, and the keys down to the value that contains them. */
  variables: Variable[];
  /** The start of a key's value, or of its nearest existing parent's. */
  positionOf(path: readonly PropertyKey[]): { offset: number; line: number } | null;
}

interface Variable {
  name: string;
  value: string;
  path: string[];
}

interface Fault {
  line: number | null;
  path: string[];
  message: string;
  /** The YAML is malformed, so `path` may hold anything, even a secret. */
  guessed?: true;
}

/** Sources of values from outside the file. */
interface Sources {
  environment: Record<string, string | undefined>;
  /** Reads a file, given its path as written. Throws an Error that says what was expected. */
  fileText(path: string): string;
}

export function readYaml(source: string, sources: Sources): YamlFile {
  const lines = new LineCounter();
  // Keys that are not strings are rejected: error messages would quote their content.
  const document = parseDocument(source, {
    lineCounter: lines,
    prettyErrors: false,
    merge: true,
    stringKeys: true,
  });
  const lineAt = (offset: number) => lines.linePos(offset).line;
  const faults = problemsIn(document, source, lineAt);
  const variables: Variable[] = [];
  const { contents } = document;
  const isEmpty = contents === null || (isScalar(contents) && contents.value === null);
  if (!isEmpty && !isMap(contents) && faults.length === 0) {
    faults.push({ line: 1, path: [], message: 'expected keys and values, like `timezone: Europe/Berlin`' });
  }

  function positionOf(path: readonly PropertyKey[]): { offset: number; line: number } | null {
    for (let length = path.length; length > 0; length--) {
      const node: unknown = document.getIn(path.slice(0, length), true);
      if (isNode(node) && node.range) return { offset: node.range[0], line: lineAt(node.range[0]) };
    }
    return null;
  }

  function resolved(value: unknown, path: string[]): unknown {
    if (typeof value === 'string') {
      return substituted(value, sources, {
        fault: (message) => faults.push({ line: positionOf(path)?.line ?? null, path, message }),
        variable: (name, given) => variables.push({ name, value: given, path }),
      });
    }
    if (Array.isArray(value)) return value.map((item, index) => resolved(item, [...path, String(index)]));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, inner]) => [key, valueGiven(inner, [...path, key])]),
    );
  }

  function valueGiven(given: unknown, path: string[]): unknown {
    const known = faults.length;
    const value = resolved(given, path);
    return value === '' && given !== '' && faults.length === known ? null : value;
  }

  let data: Record<string, unknown> = {};
  try {
    if (!isEmpty && faults.length === 0) data = resolved(document.toJS(), []) as Record<string, unknown>;
  } catch {
    // Faults found so far may be multiplied by aliases.
    faults.splice(0, faults.length, ...aliasesIn(document, lineAt));
  }
  return { data, faults, variables, positionOf };
}

function problemsIn(document: Document.Parsed, source: string, lineAt: (offset: number) => number): Fault[] {
  const problems = [...document.errors, ...document.warnings];
  const places = problems.length > 0 ? placesIn(document) : [];
  const faults = problems.map((problem): Fault => {
    const isAtEnd = problem.pos[0] >= source.length;
    const offset = isAtEnd ? source.length - 1 : problem.pos[0];
    const place = places.findLast(
      ({ begins, ends }) => begins <= offset && (offset < ends || lineAt(begins) === lineAt(offset)),
    );
    // An unclosed value ends with the file; its beginning is the better place to report.
    const line = lineAt(isAtEnd && place ? place.begins : offset);
    return { line, path: place?.path ?? [], message: wordsOf(problem), guessed: true };
  });
  // One wrong character may cause several follow-up errors.
  return faults.filter(
    ({ line, message }, n) =>
      faults.findIndex((fault) => fault.line === line && fault.message === message) === n,
  );
}

function aliasesIn(document: Document.Parsed, lineAt: (offset: number) => number): Fault[] {
  const faults = strangeAliases(document).map(
    ({ begins, path, message }): Fault => ({ line: lineAt(begins), path, message, guessed: true }),
  );
  return faults.length > 0 ? faults : [{ line: null, path: [], message: ALIASES, guessed: true }];
}

interface Told {
  fault(message: string): void;
  variable(name: string, value: string): void;
}

/** Replaces `${NAME}` and `${file:PATH}`; `$${` is an escaped `${`. Not recursive. */
function substituted(text: string, sources: Sources, told: Told): string {
  const { fault } = told;
  return text.replace(/\$\$\{|\$\{([^}]*)\}?/g, (found, name: string | undefined) => {
    if (name === undefined) return '${';
    const path = /^file:(.*)$/s.exec(name)?.[1]?.trim();
    if (path === '') fault('expected a path behind file:');
    else if (!found.endsWith('}') || (path === undefined && !/^[A-Za-z_]\w*$/.test(name))) {
      fault(`expected the name of an environment variable between \${ and }; a literal \${ is written $\${`);
    } else return path === undefined ? fromEnvironment(name, sources, told) : fromFile(path, sources, fault);
    return '';
  });
}

function fromEnvironment(name: string, { environment }: Sources, { fault, variable }: Told): string {
  const value = environment[name];
  if (value) variable(name, value);
  if (value === undefined) fault(`expected the environment variable ${name}, but it is not set`);
  return value ?? '';
}

function fromFile(path: string, { fileText }: Sources, fault: (message: string) => void): string {
  try {
    return fileText(path);
  } catch (error) {
    fault(describe(error));
    return '';
  }
}

// Secrets in files (`${file:PATH}`), as containers and systemd provide them.

/** Larger files are not a token, key or password. */
const MOST_BYTES = 64_000;

/** The text without its final newline. Throws an Error that says what was expected, never the content. */
export function readSecretFile(path: string): string {
  const bytes = bytesOf(path);
  const text = new TextDecoder('utf-8').decode(bytes).replace(/(?<![\r\n])[\r\n]+$/, '');
  if (/[\0\ufffd]/.test(text)) throw new Error(`expected text in the file ${path}`);
  if (text === '') throw new Error(`expected a value in the file ${path}, but it is empty`);
  return text;
}

function bytesOf(path: string): Buffer {
  let bytes: Buffer;
  try {
    // Reading a pipe would block the start for ever.
    if (!statSync(path).isFile()) throw new Error(`expected a file at ${path}, but it is none`);
    if (statSync(path).size > MOST_BYTES) throw tooLarge(path);
    bytes = readFileSync(path);
  } catch (error) {
    if (!(error instanceof Error) || !('code' in error)) throw error;
    const why = error.code === 'ENOENT' || error.code === 'ENOTDIR' ? 'it is not there' : String(error.code);
    throw new Error(`expected a file at ${path} that can be read (${why})`);
  }
  if (bytes.length > MOST_BYTES) throw tooLarge(path);
  return bytes;
}

function tooLarge(path: string): Error {
  return new Error(`expected at most ${MOST_BYTES / 1000} kB in the file ${path}`);
}
