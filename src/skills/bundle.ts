/** Parses SKILL.md in the open Agent Skills format. Fields that limit use become conditions. Pure. */
import { cutAt, cutMarker } from '../core/cut.js';
import { describe } from '../core/errors.js';
import { composed } from '../core/file-names.js';
import { dataOf, splitFrontMatter } from '../core/file-text.js';
import { MOST_DESCRIPTION, type Skill } from '../core/skills.js';

export interface Bundle {
  name: string;
  description: string;
  /** The instructions below the front matter. */
  body: string;
  conditions: Conditions;
  loadedBy: Skill['loadedBy'];
  /** Sentence endings for operators: it is offered, but differs from its file. */
  remarks: string[];
}

export interface Conditions {
  /** In Node's terms: `darwin`, `linux`, `win32`. null: all. */
  platforms: readonly string[] | null;
  /** All of them must exist. */
  programs: readonly string[];
  /** At least one of them, if there are any. */
  anyPrograms: readonly string[];
  /** Environment variables, all of which must be set. */
  variables: readonly string[];
}

const MOST_NAME = 64;
/** OpenClaw's name for its part of the metadata, then its former names. */
const OPENCLAW = ['openclaw', 'clawdbot', 'clawdis', 'moltbot'];
const ALL = '*';
const PLATFORMS = new Map(
  Object.entries({
    macos: 'darwin',
    osx: 'darwin',
    mac: 'darwin',
    windows: 'win32',
    win: 'win32',
    all: ALL,
    any: ALL,
  }),
);

/** Its message is a sentence ending for an operator. */
class Broken extends Error {}

/** `folderName`: used if the file has no valid name. */
export function bundleOf(
  file: string,
  folderName: string,
): { ok: true; bundle: Bundle } | { ok: false; why: string } {
  try {
    const parts = splitFrontMatter(file);
    if (parts === null) throw new Broken('it has no front matter between two lines of ---');
    const values = valuesOf(parts.matter);
    const name = nameIn(values, folderName);
    const whole = wordsIn(values, 'description').replace(/\s+/g, ' ');
    const openclaw = openclawIn(values);
    const isLong = whole.length > MOST_DESCRIPTION;
    const tooLong = `its description has ${whole.length} characters and is cut: at most ${MOST_DESCRIPTION} are shown`;
    const marker = cutMarker('skill-description-max-chars', MOST_DESCRIPTION);
    const bundle = {
      name,
      description: isLong ? `${cutAt(whole, MOST_DESCRIPTION)} ${marker}` : whole,
      body: parts.body.trim(),
      conditions: conditionsIn(values, openclaw),
      loadedBy: loadedBy(values),
      remarks: [...(isLong ? [tooLong] : []), ...withoutSettings(openclaw)],
    };
    return { ok: true, bundle };
  } catch (error) {
    if (error instanceof Broken) return { ok: false, why: error.message };
    throw error;
  }
}

/** Many files have a title there, or nothing; the folder's name is the fallback. */
function nameIn(values: Values, folderName: string): string {
  const { name } = values;
  const given = typeof name === 'string' || typeof name === 'number' ? String(name).trim() : '';
  if (/^[a-z0-9][a-z0-9_-]*$/.test(given) && given.length <= MOST_NAME) return given;
  const own = composed(folderName).trim();
  if (own === '' || own.length > MOST_NAME || /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(own)) {
    throw new Broken(`neither its name nor that of its folder is a name of at most ${MOST_NAME} characters`);
  }
  return own;
}

/** OpenClaw's settings never exist here. */
function withoutSettings(openclaw: Values): string[] {
  const config = asValues(openclaw.requires)?.config;
  const names = (Array.isArray(config) ? config : [config]).filter((each) => typeof each === 'string');
  return names.length === 0 ? [] : [`it asks for settings of OpenClaw (${names.join(', ')}): there are none`];
}

function loadedBy(values: Values): Skill['loadedBy'] {
  const noModel = isSaid(values['disable-model-invocation'], 'true');
  const noPerson = isSaid(values['user-invocable'] ?? values['user-invokable'], 'false');
  if (noModel && noPerson) throw new Broken('it says that neither a person nor a model may load it');
  return noModel ? 'people' : noPerson ? 'models' : 'anybody';
}

/** Accepts the spellings of YAML 1.1 and of people, too. */
function isSaid(value: unknown, what: 'true' | 'false'): boolean {
  const words = what === 'true' ? ['true', 'yes', 'on'] : ['false', 'no', 'off'];
  return words.includes(String(value).trim().toLowerCase());
}

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

/** Many write `description: Use it for this: that`, invalid YAML without quotes, or indent JSON by tabs. */
function quoted(matter: string): string {
  const spaced = matter.replace(/^\t+/gm, (tabs) => '  '.repeat(tabs.length));
  return spaced.replace(
    /^(name|description|license|compatibility):[ \t]+([^\s"'|>[{&*!#][^\r\n]*)/gm,
    (_, key: string, value: string) => `${key}: ${JSON.stringify(value.trim())}`,
  );
}

function asValues(value: unknown): Values | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Values) : null;
}

/** Numbers count as words: a skill may be called 1. */
function wordsIn(values: Values, key: string): string {
  const value = values[key];
  const words = typeof value === 'number' ? String(value) : value;
  if (typeof words !== 'string' || words.trim() === '') throw new Broken(`its front matter has no ${key}`);
  return words.trim();
}

/** OpenClaw's part of the metadata, under the first of its names found. */
function openclawIn(values: Values): Values {
  const metadata = asValues(unpacked(values.metadata)) ?? {};
  const found = OPENCLAW.map((name) => asValues(unpacked(metadata[name])));
  return found.find((each) => each !== null) ?? {};
}

/** From `platforms`, `os` and `deps`, MicroClaw's `compatibility` and OpenClaw's metadata. */
function conditionsIn(values: Values, openclaw: Values): Conditions {
  const compatibility = asValues(values.compatibility) ?? {};
  const requires = asValues(openclaw.requires) ?? {};
  const platforms = [values.platforms, values.os, compatibility.os, compatibility.platforms, openclaw.os].map(
    (value) => platformsIn(listOf('platforms', value)),
  );
  const limits = platforms.filter((each) => each !== null);
  // OpenClaw's `always` removes all requirements but the platforms.
  const required = (key: string) =>
    openclaw.always === true ? [] : listOf(`requires.${key}`, requires[key]);
  const deps = [...listOf('deps', values.deps), ...listOf('deps', compatibility.deps)];
  return {
    platforms:
      limits.length === 0 ? null : limits.reduce((all, each) => all.filter((name) => each.includes(name))),
    programs: [...deps, ...required('bins')].map(asProgram),
    anyPrograms: required('anyBins').map(asProgram),
    variables: required('env').map(asVariable),
  };
}

/** OpenClaw writes its metadata as one-line JSON, sometimes as a string that contains it. */
function unpacked(metadata: unknown): unknown {
  if (typeof metadata !== 'string' || !metadata.trim().startsWith('{')) return metadata;
  try {
    return dataOf(metadata);
  } catch {
    throw new Broken('its metadata is no JSON');
  }
}

/** A list, or comma-separated words. */
function listOf(key: string, value: unknown): string[] {
  if (value === undefined || value === null) return [];
  const items = typeof value === 'string' ? value.split(',') : value;
  if (!Array.isArray(items) || !items.every((item) => typeof item === 'string')) {
    throw new Broken(`${key} in its front matter must be a list of names`);
  }
  return items.map((item) => item.trim()).filter((item) => item !== '');
}

/** null: any platform. An unknown platform never matches ours. */
function platformsIn(names: string[]): string[] | null {
  const known = names.map((name) => PLATFORMS.get(name.toLowerCase()) ?? name.toLowerCase());
  return known.length === 0 || known.includes(ALL) ? null : known;
}

function named(what: string, form: RegExp) {
  return (name: string) => {
    if (form.test(name)) return name;
    throw new Broken(`${JSON.stringify(name.slice(0, 100))} is no name of a ${what}`);
  };
}

const asProgram = named('program', /^(?!\.+$)[A-Za-z0-9._+-]{1,100}$/);
const asVariable = named('variable', /^[A-Za-z_][A-Za-z0-9_]{0,199}$/);
