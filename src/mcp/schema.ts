/**
 * The JSON schema of a server's tool: whether it can be given to a model, and whether arguments fit it as far as can be
 * said without running anything of the server's (no pattern of it is ever matched here). Pure.
 */
import { cutAt } from '../core/cut.js';
import type { JsonSchema } from '../core/tool.js';
import { MOST_SCHEMA_CHARS } from './settings.js';
import { plainText } from './words.js';

const MOST_DEPTH = 40;
const MOST_WORDS = 1_000;
/** In a schema these are words for whoever reads it. */
const WORDS = new Set(['description', 'title', '$comment']);
const REFERENCES = new Set(['$ref', '$dynamicRef', '$recursiveRef']);
/** These move what a reference is relative to. */
const BASES = new Set(['$id', 'id', '$schema']);
/** Below these, the keys are names that the server chose, not words of the schema language. */
const NAMED = new Set(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas']);
/** What stands below these is data. */
const DATA = new Set(['enum', 'const', 'default', 'examples']);

export type CheckedSchema = { schema: JsonSchema } | { wrong: string };

/** The schema as a model may see it, or why it may not. */
export function checkSchema(given: unknown): CheckedSchema {
  if (!isObject(given)) return { wrong: 'its schema is no object' };
  if (given.type !== 'object') return { wrong: 'its schema is not that of an object' };
  if (depthOf(given) > MOST_DEPTH) return { wrong: 'its schema is nested too deeply' };
  if (JSON.stringify(given).length > MOST_SCHEMA_CHARS) {
    return { wrong: `its schema is longer than ${MOST_SCHEMA_CHARS} characters` };
  }
  const faults: string[] = [];
  const schema = cleaned(given, 'schema', faults) as JsonSchema;
  const [wrong] = faults;
  if (wrong !== undefined) return { wrong };
  // Some model servers refuse an object schema that names no properties.
  return { schema: isObject(schema.properties) ? schema : { ...schema, properties: {} } };
}

type Place = 'schema' | 'names' | 'data';

function cleaned(value: unknown, place: Place, faults: string[]): unknown {
  if (Array.isArray(value)) return value.map((each) => cleaned(each, place, faults));
  if (!isObject(value)) return value;
  if (place === 'data') return value;
  const kept: [string, unknown][] = [];
  for (const [key, inner] of Object.entries(value)) {
    if (place === 'names') kept.push([key, cleaned(inner, 'schema', faults)]);
    else if (REFERENCES.has(key) && !(typeof inner === 'string' && inner.startsWith('#'))) {
      faults.push('its schema refers to another document');
    } else if (BASES.has(key) && typeof inner === 'string') continue;
    else if (WORDS.has(key)) {
      if (typeof inner === 'string') kept.push([key, cutAt(plainText(inner), MOST_WORDS)]);
    } else kept.push([key, cleaned(inner, placeBelow(key), faults)]);
  }
  return Object.fromEntries(kept);
}

function placeBelow(key: string): Place {
  if (NAMED.has(key)) return 'names';
  return DATA.has(key) ? 'data' : 'schema';
}

/** Level by level, so that a schema of any depth is measured without a deep stack. */
function depthOf(value: unknown): number {
  let level: unknown[] = [value];
  let depth = 0;
  while (level.length > 0 && depth <= MOST_DEPTH) {
    level = level.flatMap((each) => (typeof each === 'object' && each !== null ? Object.values(each) : []));
    depth += 1;
  }
  return depth;
}

/**
 * What is wrong with arguments: one that is missing, is too many or is of another type, at the top alone. What lies deeper
 * is the server's to say. Empty: nothing.
 */
export function wrongArguments(schema: JsonSchema, given: Record<string, unknown>): string[] {
  const properties = isObject(schema.properties) ? schema.properties : {};
  const required = Array.isArray(schema.required) ? schema.required : [];
  const faults: string[] = [];
  for (const name of required) {
    if (typeof name === 'string' && !Object.hasOwn(given, name)) faults.push(`${name}: is missing`);
  }
  for (const [name, value] of Object.entries(given)) {
    if (Object.hasOwn(properties, name)) faults.push(...wrongValue(name, properties[name], value));
    else if (schema.additionalProperties === false && schema.patternProperties === undefined) {
      faults.push(`${name}: there is no such argument`);
    }
  }
  return faults;
}

function wrongValue(name: string, schema: unknown, value: unknown): string[] {
  if (!isObject(schema)) return [];
  const types = [schema.type].flat().filter((type): type is string => typeof type === 'string');
  if (types.length > 0 && !types.some((type) => isOfType(type, value))) {
    return [`${name}: expected ${types.join(' or ')}`];
  }
  const isSimple = typeof value !== 'object';
  if (isSimple && Array.isArray(schema.enum) && !schema.enum.includes(value)) {
    return [`${name}: expected one of ${cutAt(JSON.stringify(schema.enum), 200)}`];
  }
  return [];
}

function isOfType(type: string, value: unknown): boolean {
  switch (type) {
    case 'string':
    case 'boolean':
      return typeof value === type;
    case 'number':
      return typeof value === 'number';
    case 'integer':
      return Number.isInteger(value);
    case 'array':
      return Array.isArray(value);
    case 'object':
      return isObject(value);
    case 'null':
      return value === null;
    default:
      return true;
  }
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
