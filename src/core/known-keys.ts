/** Unknown keys of a configuration: finds and removes them, and suggests the probable key. */
import * as z from 'zod';

/** zod compiles a parser per object, which does not pay off for a single parse. */
export const ONCE = { jitless: true } as const;

/** For strict objects. Removes unknown keys from `data` and returns their paths; null counts as absent. */
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

/** A sibling with similar spelling or the same words, else a key elsewhere, else the closest sibling. */
export function hintFor(schema: z.ZodType, path: string[]): string {
  const root: Keys = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  const parents = path.slice(0, -1);
  const key = spelt(path.at(-1) ?? '');
  const siblings = Object.keys(parents.reduce(below, root).properties ?? {});
  const sibling = (among: string[]) => {
    const best = closest(key, among);
    return best === null ? null : [...parents, best];
  };
  const meant =
    sibling(siblings.filter((each) => isNear(key, each))) ??
    sibling(siblings.filter((each) => saysAsMuch(key, each))) ??
    elsewhere(key, path, root);
  if (meant !== null) return `did you mean ${meant.join('.')}?`;
  const nearest = sibling(siblings);
  if (nearest === null) return 'it has no effect';
  return `the nearest known key is ${nearest.join('.')}; known here: ${siblings.join(', ')}`;
}

/** `apiKey` and `API-key` become `api_key`. */
function spelt(key: string): string {
  return key
    .replace(/([a-z\d])([A-Z])/g, '$1_$2')
    .replaceAll('-', '_')
    .toLowerCase();
}

/** `url` and `base_url`, `model_name` and `name`. */
function saysAsMuch(key: string, known: string): boolean {
  const [few = [], many = []] = [key.split('_'), known.split('_')].sort((a, b) => a.length - b.length);
  return few.every((word) => many.includes(word));
}

/** The least nested key with this spelling, else with a similar one. */
function elsewhere(key: string, path: string[], root: Keys): string[] | null {
  const isAbove = (known: string[]) => known.every((each, n) => each === path[n]);
  const [best] = pathsIn(root)
    .filter((known) => isNear(key, known.at(-1) ?? '') && !isAbove(known))
    .map((known) => ({ known, isOther: known.at(-1) === key ? 0 : 1 }))
    .sort((a, b) => a.isOther - b.isOther || a.known.length - b.known.length);
  return best?.known ?? null;
}

function pathsIn(keys: Keys): string[][] {
  return Object.keys(keys.properties ?? {}).flatMap((key) => [
    [key],
    ...pathsIn(below(keys, key)).map((path) => [key, ...path]),
  ]);
}

/** The rest of the path may be anything. */
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

/** Relative to its length. */
export function isNear(word: string, known: string): boolean {
  return editsBetween(word, known) <= Math.max(1, Math.floor(word.length / 3));
}

/** However many edits; null for an empty list. */
export function closest(word: string, known: readonly string[]): string | null {
  const [best] = known
    .map((each) => ({ each, edits: editsBetween(word, each) }))
    .sort((a, b) => a.edits - b.edits);
  return best?.each ?? null;
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
