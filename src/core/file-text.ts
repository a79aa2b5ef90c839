/** Text of files that people edit: front matter, YAML, and UTF-8 as one character per byte, so that each byte stays. */
import {
  CST,
  type Document,
  isMap,
  isNode,
  isScalar,
  Lexer,
  LineCounter,
  parseDocument,
  stringify,
  YAMLParseError,
} from 'yaml';

export const BOM = '\xef\xbb\xbf';

export function encode(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}

export function decode(bytes: string): string {
  return Buffer.from(bytes, 'latin1').toString('utf8');
}

export function endsLine(bytes: string): boolean {
  return bytes === '' || bytes.endsWith('\n') || bytes.endsWith('\r');
}

export function linesOf(bytes: string): string[] {
  return bytes.match(/[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+$/g) ?? [];
}

/** Front matter: YAML between two `---` lines at the start of a file. Takes text or bytes (`encode`). */
interface FrontMatter {
  /** With the byte order mark, if any. */
  opening: string;
  matter: string;
  /** From the closing line on. */
  rest: string;
  body: string;
}

const OPENING = /^(?:\uFEFF|\xef\xbb\xbf)?---[ \t]*\r?\n/;

export function splitFrontMatter(file: string): FrontMatter | null {
  const opening = OPENING.exec(file)?.[0];
  if (opening === undefined) return null;
  const closing = /^---[ \t]*(?:\r?\n|$)/m.exec(file.slice(opening.length));
  if (closing === null) return null;
  const at = opening.length + closing.index;
  return {
    opening,
    matter: file.slice(opening.length, at),
    rest: file.slice(at),
    body: file.slice(at + closing[0].length),
  };
}

export function beginsFrontMatter(file: string): boolean {
  return OPENING.test(file);
}

// YAML by others. The library takes quadratic time for unclosed brackets and crashes the process when they nest deeply,
// so a text is measured first by its tokens, in linear time.

/** In characters. */
const MOST_TEXT = 65_536;
const MOST_TOKENS = 10_000;
/** Brackets, or lists and keys that begin on one line. */
const DEEPEST = 64;
const BEGINS: ReadonlySet<string> = new Set(['seq-item-ind', 'explicit-key-ind', 'map-value-ind']);
const MOST_ERRORS = 10;
/** Alias limit for `toJS`. */
export const MOST_ALIASES = 100;

/** For files that hold much, such as lorebooks, and are read once. */
export const LARGE = { text: 1_000_000, tokens: 250_000 };

/** An excessive text becomes an empty document with an error. Errors name their line. */
export function documentOf(source: string, most = { text: MOST_TEXT, tokens: MOST_TOKENS }): Document.Parsed {
  const refusal = refusalOf(source, most);
  const lines = new LineCounter();
  const document = parseDocument(refusal === null ? source : '', {
    lineCounter: lines,
    // Pretty errors quote their line, and there may be one per character.
    prettyErrors: false,
    logLevel: 'error',
  });
  document.errors.splice(MOST_ERRORS);
  for (const error of document.errors) {
    const { line, col } = lines.linePos(error.pos[0]);
    error.message += ` at line ${line}, column ${col}`;
  }
  if (refusal !== null) document.errors.push(new YAMLParseError([0, 0], 'RESOURCE_EXHAUSTION', refusal));
  return document;
}

/** Throws for invalid YAML, and for aliases that are unresolved or expand too far. */
export function dataOf(source: string, most?: { text: number; tokens: number }): unknown {
  const document = documentOf(source, most);
  const [error] = document.errors;
  if (error !== undefined) throw error;
  return document.toJS({ maxAliasCount: MOST_ALIASES });
}

function refusalOf(source: string, most: { text: number; tokens: number }): string | null {
  if (source.length > most.text) return `it is longer than ${most.text} characters`;
  let tokens = 0;
  let depth = 0;
  let begun = 0;
  let isText = false;
  for (const token of new Lexer().lex(source)) {
    tokens += 1;
    const kind: CST.TokenType | null = isText ? null : CST.tokenType(token);
    isText = kind === 'scalar';
    if (kind === 'flow-map-start' || kind === 'flow-seq-start') depth += 1;
    else if (kind === 'flow-map-end' || kind === 'flow-seq-end') depth = Math.max(0, depth - 1);
    else if (kind === 'newline') begun = 0;
    else if (kind !== null && BEGINS.has(kind) && depth === 0) begun += 1;
    if (tokens > most.tokens) return 'it has too many keys and values';
    if (depth > DEEPEST || begun > DEEPEST) return 'it is nested too deep';
  }
  return null;
}

/** With one key set, and comments and order preserved; null if this is no YAML map that can be edited reliably. */
export function withKey(source: string, key: string, value: string | boolean): string | null {
  const document = documentOf(source);
  if (document.errors.length > 0) return null;
  const plain = stringify(value, { lineWidth: 0 }).replace(/\n$/, '');
  // A multi-line value is written on one line as JSON, which YAML accepts.
  const scalar = plain.includes('\n') ? JSON.stringify(value) : plain;

  const map = document.contents;
  if (map !== null && !isMap(map)) return null;
  const pair = map?.items.find((item) => isScalar(item.key) && item.key.value === key);
  const edited = pair ? replaced(source, pair.value, scalar) : added(source, key, scalar, map?.flow === true);
  return edited !== null && documentOf(edited).get(key) === value ? edited : null;
}

/** The file with one key of its front matter set; null if that cannot be edited reliably. */
export function withFrontMatterKey(file: Buffer, key: string, value: string | boolean): Buffer | null {
  const parts = splitFrontMatter(file.toString('latin1'));
  const matter = parts && withKey(decode(parts.matter), key, value);
  return parts && matter !== null ? Buffer.from(parts.opening + encode(matter) + parts.rest, 'latin1') : null;
}

function replaced(source: string, value: unknown, scalar: string): string | null {
  const range = isNode(value) ? value.range : null;
  if (!range) return null;
  const [from, to] = range;
  // A value that spans lines includes the last line end.
  const lineEnd = /(?:\r\n|\n)$/.exec(source.slice(from, to))?.[0] ?? '';
  const space = source[from - 1] === ':' ? ' ' : '';
  return source.slice(0, from) + space + scalar + lineEnd + source.slice(to);
}

function added(source: string, key: string, scalar: string, flow: boolean): string | null {
  if (flow) return null;
  const eol = source.includes('\r\n') ? '\r\n' : '\n';
  const gap = source === '' || source.endsWith('\n') ? '' : eol;
  return `${source}${gap}${key}: ${scalar}${eol}`;
}
