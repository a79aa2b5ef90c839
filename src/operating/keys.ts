/**
 * Which keys of a configuration nobody knows, and what was probably meant. Works on the zod schema itself, so
 * that a key is known exactly when the schema has it.
 */
import * as z from 'zod';

export interface UnknownKey {
  path: string[];
  /** The key that was probably meant, as a path from the root; null when none is near. */
  nearest: string | null;
  /** What could stand there instead. */
  known: string[];
}

/** `data` without the keys that `schema` does not have, and a list of those. */
export function sortOutUnknown(
  schema: z.ZodType,
  data: Record<string, unknown>,
): { data: Record<string, unknown>; unknown: UnknownKey[] } {
  const everywhere = pathsOf(schema, []);
  const unknown: UnknownKey[] = [];

  function sift(inner: z.ZodType, value: unknown, path: string[]): unknown {
    const bare = unwrap(inner);
    if (bare instanceof z.ZodArray && Array.isArray(value)) {
      return value.map((item, index) => sift(asType(bare.element), item, [...path, String(index)]));
    }
    if (!(bare instanceof z.ZodObject) || !isRecord(value)) return value;
    const known = Object.keys(bare.shape);
    const kept: [string, unknown][] = [];
    for (const [key, item] of Object.entries(value)) {
      const at = [...path, key];
      if (known.includes(key)) {
        kept.push([key, sift(asType(bare.shape[key]), item, at)]);
      } else {
        unknown.push({ path: at, known, nearest: nearestPath(at, known, everywhere) });
      }
    }
    return Object.fromEntries(kept);
  }

  const sifted = sift(schema, data, []);
  return { data: isRecord(sifted) ? sifted : {}, unknown };
}

/** A sibling that is spelt nearly so, else the same key in another place. */
function nearestPath(path: string[], siblings: string[], everywhere: string[][]): string | null {
  const key = path.at(-1) ?? '';
  const near = nearest(key, siblings);
  if (near !== null) return [...path.slice(0, -1), near].join('.');
  const elsewhere = everywhere.find((known) => known.at(-1) === key);
  return elsewhere ? elsewhere.join('.') : null;
}

/** The candidate with the fewest edits, if these are few for so short a word. */
function nearest(word: string, candidates: string[]): string | null {
  const most = Math.max(1, Math.floor(word.length / 3));
  let best: string | null = null;
  let fewest = most + 1;
  for (const candidate of candidates) {
    const edits = editDistance(word.toLowerCase().replaceAll('-', '_'), candidate);
    if (edits < fewest) {
      best = candidate;
      fewest = edits;
    }
  }
  return best;
}

/** Insertions, deletions, replacements, and swaps of neighbours. */
function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = at(last, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      let fewest = Math.min(at(last, j) + 1, at(row, j - 1) + 1, replaced);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        fewest = Math.min(fewest, at(beforeLast, j - 2) + 1);
      }
      row.push(fewest);
    }
    beforeLast = last;
    last = row;
  }
  return at(last, b.length);
}

function at(row: number[], index: number): number {
  return row[index] ?? Number.POSITIVE_INFINITY;
}

function pathsOf(schema: z.ZodType, path: string[]): string[][] {
  const bare = unwrap(schema);
  if (!(bare instanceof z.ZodObject)) return [path];
  return Object.entries(bare.shape).flatMap(([key, inner]) => pathsOf(asType(inner), [...path, key]));
}

/** What stands behind defaults and optionality. */
function unwrap(schema: z.ZodType): z.ZodType {
  let inner = schema;
  while (
    inner instanceof z.ZodOptional ||
    inner instanceof z.ZodNullable ||
    inner instanceof z.ZodDefault ||
    inner instanceof z.ZodPrefault
  ) {
    inner = asType(inner.unwrap());
  }
  return inner;
}

/** zod types the insides of its containers by its core only; all of ours come from the same library. */
function asType(schema: unknown): z.ZodType {
  if (schema instanceof z.ZodType) return schema;
  throw new TypeError('A configuration schema holds something that is not a zod type.');
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
