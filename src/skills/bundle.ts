/**
 * One SKILL.md in the open Agent Skills format: YAML front matter with `name` and `description`, then instructions. What
 * other programs need of it is passed over; what says where it can be used is a condition. Pure.
 */
import { describe } from '../core/errors.js';
import { dataOf } from '../core/yaml.js';

export interface Bundle {
  name: string;
  description: string;
  /** What stands below the front matter. */
  body: string;
  conditions: Conditions;
}

export interface Conditions {
  /** As Node names them: `darwin`, `linux`, `win32`. null: all. */
  platforms: readonly string[] | null;
  /** All of them have to be there. */
  programs: readonly string[];
  /** Of each list at least one. */
  anyPrograms: readonly (readonly string[])[];
}

const MOST_NAME = 64;
const MOST_DESCRIPTION = 1_024;
const PLATFORMS: Readonly<Record<string, string | null>> = {
  ...{ darwin: 'darwin', macos: 'darwin', osx: 'darwin', mac: 'darwin' },
  ...{ linux: 'linux', windows: 'win32', win32: 'win32', win: 'win32' },
  ...{ all: null, any: null, '*': null },
};

/** A sentence's end for an operator. */
class Broken extends Error {}

export function bundleOf(file: string): { ok: true; bundle: Bundle } | { ok: false; why: string } {
  try {
    const [, matter, body = ''] = FRONT_MATTER.exec(file) ?? [];
    if (matter === undefined) throw new Broken('it has no front matter between two lines of ---');
    const values = valuesOf(matter);
    const name = wordsIn(values, 'name');
    const description = wordsIn(values, 'description').replace(/\s+/g, ' ');
    if (!/^[a-z0-9][a-z0-9_-]*$/.test(name) || name.length > MOST_NAME) {
      throw new Broken(`its name must be lower-case letters, digits and hyphens, at most ${MOST_NAME}`);
    }
    if (description.length > MOST_DESCRIPTION) {
      throw new Broken(
        `its description has ${description.length} characters; ${MOST_DESCRIPTION} are allowed`,
      );
    }
    return { ok: true, bundle: { name, description, body: body.trim(), conditions: conditionsIn(values) } };
  } catch (error) {
    if (error instanceof Broken) return { ok: false, why: error.message };
    throw error;
  }
}

const FRONT_MATTER = /^\uFEFF?---[ \t]*\r?\n([\s\S]*?)(?<=\n)---[ \t]*(?:\r?\n|$)([\s\S]*)$/;

type Values = Record<string, unknown>;

function valuesOf(matter: string): Values {
  let values: unknown;
  try {
    values = dataOf(matter);
  } catch (error) {
    try {
      values = dataOf(quoted(matter));
    } catch {
      throw new Broken(`its front matter is no YAML: ${describe(error).split('\n', 1)[0]}`);
    }
  }
  const found = asValues(values);
  if (found === null) throw new Broken('its front matter has no keys');
  return found;
}

/** Many write `description: Use it for this: that`, which is no YAML without quotes. */
function quoted(matter: string): string {
  return matter.replace(
    /^(name|description|license|compatibility):[ \t]+([^\s"'|>[{&*!#][^\r\n]*)/gm,
    (_, key: string, value: string) => `${key}: ${JSON.stringify(value.trim())}`,
  );
}

function asValues(value: unknown): Values | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Values) : null;
}

/** Numbers are words, too: a skill may be called 1. */
function wordsIn(values: Values, key: string): string {
  const value = values[key];
  const words = typeof value === 'number' ? String(value) : value;
  if (typeof words !== 'string' || words.trim() === '') throw new Broken(`its front matter has no ${key}`);
  return words.trim();
}

/** `platforms`, `os` and `deps`, MicroClaw's `compatibility`, OpenClaw's `metadata.openclaw`. */
function conditionsIn(values: Values): Conditions {
  const compatibility = asValues(values.compatibility) ?? {};
  const openclaw = asValues(asValues(unpacked(values.metadata))?.openclaw) ?? {};
  const requires = asValues(openclaw.requires) ?? {};
  const platforms = [values.platforms, values.os, compatibility.os, compatibility.platforms, openclaw.os].map(
    (value) => platformsIn(listOf('platforms', value)),
  );
  const named = platforms.filter((each) => each !== null);
  // What OpenClaw calls always there asks for no programs.
  const isAlways = openclaw.always === true;
  return {
    platforms: named.reduce<readonly string[] | null>(
      (all, each) => all?.filter((name) => each.includes(name)) ?? each,
      null,
    ),
    programs: [
      ...listOf('deps', values.deps),
      ...listOf('deps', compatibility.deps),
      ...(isAlways ? [] : listOf('requires.bins', requires.bins)),
    ].map(asProgram),
    anyPrograms: [isAlways ? [] : listOf('requires.anyBins', requires.anyBins).map(asProgram)].filter(
      ({ length }) => length > 0,
    ),
  };
}

/** OpenClaw writes its metadata as JSON in one line, some as a text that holds it. */
function unpacked(metadata: unknown): unknown {
  if (typeof metadata !== 'string' || !metadata.trim().startsWith('{')) return metadata;
  try {
    return dataOf(metadata);
  } catch {
    throw new Broken('its metadata is no JSON');
  }
}

/** A list, or words with commas between them. */
function listOf(key: string, value: unknown): string[] {
  if (value === undefined || value === null) return [];
  const items = typeof value === 'string' ? value.split(',') : value;
  if (!Array.isArray(items) || !items.every((item) => typeof item === 'string')) {
    throw new Broken(`${key} in its front matter must be a list of names`);
  }
  return items.map((item) => item.trim()).filter((item) => item !== '');
}

/** null: wherever it is. A platform that nobody knows is none that we run on. */
function platformsIn(names: string[]): string[] | null {
  const known = names.map((name) => {
    const lower = name.toLowerCase();
    return Object.hasOwn(PLATFORMS, lower) ? (PLATFORMS[lower] ?? null) : lower;
  });
  return names.length === 0 || known.includes(null) ? null : known.filter((name) => name !== null);
}

function asProgram(name: string): string {
  if (!/^[A-Za-z0-9._+-]{1,100}$/.test(name) || /^\.+$/.test(name)) {
    throw new Broken(`${JSON.stringify(name.slice(0, 100))} is no name of a program`);
  }
  return name;
}
