/** Statements as PostgreSQL takes them: `$1` for parameters with their types, names for prepared ones, quoted aliases. */
import { types } from 'pg';
import type { Watched } from '../db.js';
import { POSTGRES, spelled, watchedTable } from '../sql.js';

/** A statement with its values, as `pg` takes it. */
export interface Bound {
  name: string;
  text: string;
  values: (string | number | null)[];
}

interface Parsed {
  /** Text, and between its pieces the places of parameters. */
  pieces: (string | number)[];
  /** The parameters' names; those of `?` are their places. */
  names: string[];
  table: Watched | null;
  /** By the types of the values: PostgreSQL needs to know them. */
  variants: Map<string, { name: string; text: string }>;
}

/** Strings, quoted names, parameters, and names in camelCase, which lose their capitals unless they are quoted. */
const TOKENS = /'(?:[^']|'')*'|"[^"]*"|@(\w+)|\?|\b([a-z]+[A-Z]\w*)\b/g;

const parsed = new Map<string, Parsed>();
let named = 0;

export function parse(sql: string): Parsed {
  const known = parsed.get(sql);
  if (known !== undefined) return known;
  const text = spelled(sql, POSTGRES);
  const names: string[] = [];
  const pieces: Parsed['pieces'] = [''];
  const add = (piece: string) => {
    pieces[pieces.length - 1] += piece;
  };
  let at = 0;
  for (const { 0: token, 1: parameter, 2: camel, index } of text.matchAll(TOKENS)) {
    add(text.slice(at, index));
    at = index + token.length;
    if (parameter === undefined && token !== '?') {
      add(camel === undefined ? token : `"${camel}"`);
      continue;
    }
    const name = parameter ?? String(names.length);
    const place = names.indexOf(name);
    pieces.push(place < 0 ? names.push(name) - 1 : place, '');
  }
  add(text.slice(at));
  const statement = { pieces, names, table: watchedTable(sql), variants: new Map() };
  parsed.set(sql, statement);
  return statement;
}

export function bind({ pieces, names, variants }: Parsed, given: readonly unknown[]): Bound {
  const [first] = given;
  const isNamed = typeof first === 'object' && first !== null;
  const from = (isNamed ? first : given) as Record<string, unknown>;
  const values = names.map((name) => plain(from[name]));
  const casts = values.map(castOf);
  const key = casts.join();
  let variant = variants.get(key);
  if (variant === undefined) {
    const text = pieces
      .map((piece) => (typeof piece === 'string' ? piece : `$${piece + 1}${casts[piece]}`))
      .join('');
    variant = { name: `coterie_${++named}`, text };
    variants.set(key, variant);
  }
  return { ...variant, values };
}

function plain(value: unknown): string | number | null {
  if (typeof value === 'boolean') return Number(value);
  return typeof value === 'string' || typeof value === 'number' ? value : null;
}

/** A null has the type of its place. */
function castOf(value: string | number | null): string {
  if (value === null) return '';
  if (typeof value === 'string') return '::text';
  return Number.isInteger(value) ? '::bigint' : '::float8';
}

/** Flags are 0 and 1, and all numbers JavaScript's: ids and times stay below 2^53. */
export const TYPES = {
  getTypeParser(oid: number, format?: 'text' | 'binary') {
    if (oid === types.builtins.BOOL) return (value: string) => (value === 't' ? 1 : 0);
    if (oid === types.builtins.INT8 || oid === types.builtins.NUMERIC) return Number;
    return types.getTypeParser(oid, format as 'text');
  },
};
