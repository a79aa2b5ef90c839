/**
 * Sets single keys in the text of a YAML file. Only the lines of these keys change: comments, order, spacing and unknown
 * keys stay. Where a text cannot be cut that finely (a list in brackets, an anchor), the parsed document is written anew,
 * which keeps comments and order, but not every space. The result is always read again and compared.
 */
import { isDeepStrictEqual } from 'node:util';
import {
  type Document,
  isCollection,
  isMap,
  isScalar,
  type Pair,
  parseDocument,
  stringify,
  type YAMLMap,
} from 'yaml';
import { Fault } from '../core/errors.js';

export interface KeyChange {
  path: readonly string[];
  /** null: the key is removed. */
  value: string | boolean | null;
}

/** The text with these changes. Throws Fault `configuration` if the text is no YAML, or cannot be changed. */
export function editYaml(source: string, changes: readonly KeyChange[]): string {
  return changes.reduce(withChange, source);
}

function withChange(source: string, change: KeyChange): string {
  const document = read(source);
  const wanted = wantedOf(source, change);
  const candidates = [spliced(source, document, change), () => rewritten(source, change)];
  for (const candidate of candidates) {
    const text = typeof candidate === 'function' ? candidate() : candidate;
    if (text !== null && isDeepStrictEqual(valuesIn(text), wanted)) return text;
  }
  throw new Fault('configuration', `${change.path.join('.')} cannot be changed here; edit the file by hand`);
}

const READING = { merge: true, stringKeys: true, prettyErrors: false } as const;

function read(source: string): Document.Parsed {
  const document = parseDocument(source, READING);
  if (document.errors.length > 0)
    throw new Fault('configuration', 'The file is no valid YAML; mend it first');
  return document;
}

function valuesIn(text: string): unknown {
  const document = parseDocument(text, READING);
  return document.errors.length > 0 ? undefined : document.toJS();
}

/** The values that the file shall have, reckoned without its text. */
function wantedOf(source: string, { path, value }: KeyChange): unknown {
  const root = (valuesIn(source) ?? {}) as Record<string, unknown>;
  let map = root;
  const [last = '', ...above] = [...path].reverse();
  for (const key of above.reverse()) {
    const inner = map[key];
    if (inner !== null && inner !== undefined && (typeof inner !== 'object' || Array.isArray(inner))) {
      throw new Fault('configuration', `${key} is not a section of keys in the file; edit it by hand`);
    }
    if (value === null && !inner) return root;
    // A copy: an alias makes several keys share one value.
    map[key] = { ...inner };
    map = map[key] as Record<string, unknown>;
  }
  if (value === null) delete map[last];
  else map[last] = escaped(value);
  return root;
}

/** `${` begins a variable in the file. As a function, since `$$` in a replacement is one `$`. */
function escaped(value: string | boolean): string | boolean {
  return typeof value === 'string' ? value.replaceAll('${', () => '$${') : value;
}

function rewritten(source: string, { path, value }: KeyChange): string | null {
  const document = read(source);
  try {
    if (value === null) document.deleteIn(path);
    else document.setIn(path, escaped(value));
    return document.toString({ lineWidth: 0 });
  } catch {
    // An alias whose anchor is gone, or a value in the place of a section.
    return null;
  }
}

/** null: it has to be rewritten. */
function spliced(source: string, document: Document.Parsed, { path, value }: KeyChange): string | null {
  let map: unknown = document.contents;
  if (map === null || (isScalar(map) && map.value === null)) {
    return value === null ? source : appended(source, path, value);
  }
  for (const [depth, key] of path.entries()) {
    if (!isMap(map) || map.flow) return null;
    const pair = map.items.find((each) => isScalar(each.key) && each.key.value === key);
    if (pair === undefined) return value === null ? source : inserted(source, map, path.slice(depth), value);
    if (depth === path.length - 1) {
      return value === null ? withoutPair(source, pair) : replaced(source, pair, value);
    }
    if (isEmpty(pair)) return value === null ? source : filled(source, pair, path.slice(depth + 1), value);
    map = pair.value;
  }
  return null;
}

function isEmpty({ value }: Pair): boolean {
  return value === null || (isScalar(value) && value.value === null && value.source === '');
}

/** Begins on a new line. */
function appended(source: string, path: readonly string[], value: string | boolean): string {
  const newline = newlineOf(source);
  const before = source === '' || /\n$/.test(source) ? source : `${source}${newline}`;
  return before + lines(path, value, '', newline);
}

/** Behind the last key of the section. */
function inserted(
  source: string,
  map: YAMLMap,
  path: readonly string[],
  value: string | boolean,
): string | null {
  const first = map.items[0]?.key;
  const last = map.items.at(-1);
  const keyEnd = endOf(last?.key);
  if (!isScalar(first) || !first.range || keyEnd === null) return null;
  const indent = source.slice(lineStart(source, first.range[0]), first.range[0]);
  if (indent.trim() !== '') return null;
  const newline = newlineOf(source);
  const end = lineEnd(source, Math.max(endOf(last?.value) ?? keyEnd, keyEnd));
  const before = source.slice(0, end);
  const gap = before === '' || before.endsWith('\n') ? '' : newline;
  return `${before}${gap}${lines(path, value, indent, newline)}${source.slice(end)}`;
}

/** As the first keys of a section that has none yet. */
function filled(
  source: string,
  { key }: Pair,
  path: readonly string[],
  value: string | boolean,
): string | null {
  const end = endOf(key);
  if (end === null || !isScalar(key) || !key.range) return null;
  const start = lineStart(source, key.range[0]);
  const indent = source.slice(start, key.range[0]);
  if (indent.trim() !== '') return null;
  const newline = newlineOf(source);
  const at = lineEnd(source, end);
  const before = source.slice(0, at);
  const gap = before.endsWith('\n') ? '' : newline;
  return `${before}${gap}${lines(path, value, `${indent}  `, newline)}${source.slice(at)}`;
}

function replaced(source: string, pair: Pair, value: string | boolean): string | null {
  const { key, value: old } = pair;
  const text = inline(value);
  if (isEmpty(pair)) {
    const colon = source.indexOf(':', endOf(key) ?? source.length);
    return colon === -1 ? null : `${source.slice(0, colon + 1)} ${text}${source.slice(colon + 1)}`;
  }
  const isOneValue = isScalar(old) || (isCollection(old) && old.flow === true);
  if (!isOneValue || !old.range) return null;
  // A block of lines includes its last line end.
  const end = isScalar(old) && old.type?.startsWith('BLOCK_') ? newlineOf(source) : '';
  return source.slice(0, old.range[0]) + text + end + source.slice(old.range[1]);
}

function withoutPair(source: string, { key, value }: Pair): string | null {
  if (!isScalar(key) || !key.range) return null;
  const start = lineStart(source, key.range[0]);
  if (source.slice(start, key.range[0]).trim() !== '') return null;
  const end = lineEnd(source, Math.max(endOf(value) ?? 0, key.range[1]));
  return source.slice(0, start) + source.slice(end);
}

function lines(path: readonly string[], value: string | boolean, indent: string, newline: string): string {
  const keys = path.map((key, depth) => `${indent}${'  '.repeat(depth)}${key}:`);
  return `${keys.join(newline)} ${inline(value)}${newline}`;
}

/** On one line, and right in a block as well as in brackets. */
function inline(value: string | boolean): string {
  const given = escaped(value);
  if (typeof given === 'boolean') return String(given);
  const isPlain = /^[A-Za-z0-9][\w./:@+-]*$/.test(given) && !given.endsWith(':');
  return isPlain && stringify(given, { lineWidth: 0 }) === `${given}\n` ? given : JSON.stringify(given);
}

function endOf(node: unknown): number | null {
  return (node as { range?: [number, number, number] | null } | null | undefined)?.range?.[1] ?? null;
}

function lineStart(source: string, offset: number): number {
  return source.lastIndexOf('\n', offset - 1) + 1;
}

/** Behind its line break; the same offset at the start of a line, where a block of text ends. */
function lineEnd(source: string, offset: number): number {
  if (offset > 0 && source[offset - 1] === '\n') return offset;
  const end = source.indexOf('\n', offset);
  return end === -1 ? source.length : end + 1;
}

function newlineOf(source: string): string {
  return source.includes('\r\n') ? '\r\n' : '\n';
}
