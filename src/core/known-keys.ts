/** Keys of a configuration that its schema does not have: found, left out, and with the key that was probably meant. */
import * as z from 'zod';

/** To compile a parser of its own for each object, as zod would, takes longer than to do without where there is one thing to parse. */
export const ONCE = { jitless: true } as const;

/**
 * Parses data with a schema of strict objects. Keys that they do not have are removed from the data, and listed; those
 * that they have count as left out where they have no value (null).
 */
export function parseKnown<Schema extends z.ZodType>(schema: Schema, data: Record<string, unknown>) {
  const first = schema.safeParse(data, ONCE);
  const unknown = (first.error?.issues ?? []).flatMap((issue) =>
    issue.code === 'unrecognized_keys' ? issue.keys.map((key) => [...issue.path.map(String), key]) : [],
  );
  for (const path of unknown) remove(data, path);
  const isAsGiven = unknown.length === 0 && !holdsEmpty(data);
  return { parsed: isAsGiven ? first : schema.safeParse(withoutEmpty(data), ONCE), unknown };
}

function holdsEmpty(value: unknown): boolean {
  return value === null || (typeof value === 'object' && Object.values(value).some(holdsEmpty));
}

function withoutEmpty(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutEmpty);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).filter(([, inner]) => inner !== null);
  return Object.fromEntries(entries.map(([key, inner]) => [key, withoutEmpty(inner)]));
}

function remove(data: object, path: string[]): void {
  const [key = '', ...rest] = path;
  const inner: unknown = Reflect.get(data, key);
  if (rest.length === 0) Reflect.deleteProperty(data, key);
  else if (typeof inner === 'object' && inner !== null) remove(inner, rest);
}

/** What could stand there instead: a sibling that is spelt nearly so, else the same key in another place. */
export function hintFor(schema: z.ZodType, path: string[]): string {
  const root = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  const parents = path.slice(0, -1);
  const key = path.at(-1) ?? '';
  const known = Object.keys(parents.reduce(below, root).properties ?? {});
  const near = nearest(key, known);
  const meant = near === null ? pathTo(key, root) : [...parents, near];
  if (meant !== null) return `did you mean ${meant.join('.')}?`;
  return known.length === 0 ? 'it has no effect' : `known here: ${known.join(', ')}`;
}

/** How much of a path are keys that the schema names: what is behind may be anything. */
export function knownPart(schema: z.ZodType, path: string[]): string[] {
  let keys: Keys = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  const unnamed = path.findIndex((key) => {
    const isNamed = keys.properties?.[key] !== undefined || (keys.items !== undefined && /^\d+$/.test(key));
    keys = below(keys, key);
    return !isNamed;
  });
  return unnamed === -1 ? path : path.slice(0, unnamed);
}

type Keys = z.core.JSONSchema.BaseSchema;

function below(keys: Keys, key: string): Keys {
  const inner = keys.properties?.[key] ?? keys.items ?? keys.additionalProperties;
  return typeof inner === 'object' && !Array.isArray(inner) ? inner : {};
}

function pathTo(key: string, keys: Keys): string[] | null {
  for (const inner of Object.keys(keys.properties ?? {})) {
    const path = inner === key ? [] : pathTo(key, below(keys, inner));
    if (path !== null) return [inner, ...path];
  }
  return null;
}

/** The candidate with the fewest edits, if these are few for so short a word. */
function nearest(word: string, candidates: string[]): string | null {
  const most = Math.max(1, Math.floor(word.length / 3));
  const spelt = word.toLowerCase().replaceAll('-', '_');
  const [best] = candidates
    .map((candidate) => ({ candidate, edits: editsBetween(spelt, candidate) }))
    .filter(({ edits }) => edits <= most)
    .sort((a, b) => a.edits - b.edits);
  return best?.candidate ?? null;
}

/** Insertions, deletions, replacements, and swaps of neighbours. */
function editsBetween(a: string, b: string): number {
  const rows = [Array.from({ length: b.length + 1 }, (_, j) => j)];
  const at = (i: number, j: number) => rows[i]?.[j] ?? Number.POSITIVE_INFINITY;
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    rows.push(row);
    for (let j = 1; j <= b.length; j++) {
      const replaced = at(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const isSwap = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      row.push(
        Math.min(at(i - 1, j) + 1, at(i, j - 1) + 1, replaced, isSwap ? at(i - 2, j - 2) + 1 : replaced),
      );
    }
  }
  return at(a.length, b.length);
}
