/** Sets one key of a YAML text or of front matter, and preserves the rest, with comments and order. */
import { isMap, isNode, isScalar, stringify } from 'yaml';
import { decode, documentOf, encode, splitFrontMatter } from '../core/file-text.js';

/** null if the text is not a YAML map that can be edited reliably. */
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
