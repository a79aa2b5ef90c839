/** Finds the JSON objects in a model's text: in prose, in fences, bare. Pure; one pass, linear time. */

import type * as z from 'zod';

/** Objects nested deeper are ignored. */
const DEEPEST = 200;

interface FoundObject {
  value: Record<string, unknown>;
  /** Its range: `to` is exclusive. */
  from: number;
  to: number;
}

/** The outermost objects, in order. */
export function objectsIn(text: string): FoundObject[] {
  const found: FoundObject[] = [];
  const seen = new Uint8Array(text.length);
  let from = text.indexOf('{');
  while (from >= 0) {
    const scanned = seen[from] === 1 ? [] : scan(text, from, seen);
    for (const [start, end] of scanned) {
      const value = parsed(text.slice(start, end));
      if (value !== null) found.push({ value, from: start, to: end });
    }
    const last = scanned.at(-1);
    from = text.indexOf('{', last?.[0] === from ? last[1] : from + 1);
  }
  // A later match may enclose an earlier one as part of a string.
  return withoutNested(found);
}

/** All objects of a type in order, nested ones included. */
export function typedIn(text: string, type: string): FoundObject[] {
  return objectsIn(text).flatMap(({ value, from, to }) =>
    ofType(value, type).map((each) => ({ value: each, from, to })),
  );
}

/** Whether an object of this type begins in the text, complete or not. */
export function isBegun(text: string, type: string): boolean {
  return new RegExp(`"type"\\s*:\\s*"${type}"`).test(text);
}

/** The same object with each text in it replaced. */
export function withTexts<Value>(value: Value, replace: (text: string) => string): Value {
  // Replaced while writing: a reviver cannot go as deep, and would fail on a task that was accepted.
  const replaced = (_: string, each: unknown) => (typeof each === 'string' ? replace(each) : each);
  return JSON.parse(JSON.stringify(value, replaced));
}

/** Parses a plain JSON object; null for anything else. */
export function parsed(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A field, its form, and the two in words. */
export type Requirement = readonly [key: string, form: z.ZodType, wanted: string];

/** In words: the fields that are missing or of another form. */
export function lacking(given: Record<string, unknown>, required: readonly Requirement[]): string[] {
  return required.flatMap(([key, form, wanted]) => (form.safeParse(given[key]).success ? [] : [wanted]));
}

/** Equal texts for values that differ only in the order of their fields. */
export function canonical(value: unknown): string {
  return JSON.stringify(value, (_, each: unknown) =>
    isObject(each)
      ? Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)))
      : each,
  );
}

function ofType(value: unknown, type: string, depth = 0): Record<string, unknown>[] {
  if (typeof value !== 'object' || value === null || depth > DEEPEST) return [];
  if (isObject(value) && value.type === type) return [value];
  return Object.values(value).flatMap((each) => ofType(each, type, depth + 1));
}

type Span = readonly [from: number, to: number];

function withoutNested(found: FoundObject[]): FoundObject[] {
  const kept: FoundObject[] = [];
  for (const each of found.sort((a, b) => a.from - b.from || b.to - a.to)) {
    if (each.from >= (kept.at(-1)?.to ?? 0)) kept.push(each);
  }
  return kept;
}

const SPACE = /[ \t\r\n]*/y;
const STRING = /"[^"\\]*(?:\\.[^"\\]*)*"/sy;
/** Numbers and words; JSON.parse checks them. */
const PLAIN = /[-+.\w]+/y;

/** Returns the object that begins there or, if it breaks off, those closed in it; marks all opening braces read. */
function scan(text: string, from: number, seen: Uint8Array): Span[] {
  const closed: Span[] = [];
  let at = from;
  function take(what: RegExp): boolean {
    what.lastIndex = at;
    const isThere = what.test(text);
    if (isThere) at = what.lastIndex;
    return isThere;
  }
  /** With the space around it. */
  function takeSign(sign: string): boolean {
    take(SPACE);
    if (text[at] !== sign) return false;
    at++;
    take(SPACE);
    return true;
  }
  function takeValue(depth: number): boolean {
    const begin = at;
    const hasKeys = text[at] === '{';
    if (!hasKeys && text[at] !== '[') return take(STRING) || take(PLAIN);
    if (hasKeys) seen[at] = 1;
    if (depth >= DEEPEST) return false;
    takeSign(hasKeys ? '{' : '[');
    const end = hasKeys ? '}' : ']';
    if (text[at] !== end) {
      do {
        if (hasKeys && !(take(STRING) && takeSign(':'))) return false;
        if (!takeValue(depth + 1)) return false;
      } while (takeSign(','));
      if (text[at] !== end) return false;
    }
    at++;
    if (!hasKeys) return true;
    while ((closed.at(-1)?.[0] ?? -1) > begin) closed.pop();
    closed.push([begin, at]);
    return true;
  }
  takeValue(0);
  return closed;
}
