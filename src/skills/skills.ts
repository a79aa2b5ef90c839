/** The skills below `data/skills`, alone or in groups. A broken one affects no other; links lead out of none. */
import { realpathSync, statSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { basename, delimiter, dirname, isAbsolute, join, sep } from 'node:path';
import { entriesBelow, within } from '../core/beneath.js';
import { sizeInWords } from '../core/cut.js';
import { describe } from '../core/errors.js';
import { nullIfMissing, readIfThere } from '../core/file-access.js';
import { readUnlessUnchanged } from '../core/file-cache.js';
import { composed } from '../core/file-names.js';
import type { Log } from '../core/log.js';
import {
  CATALOGUE_CHARS,
  catalogueOf,
  type FoundSkills,
  mayLoad,
  type Skill,
  type SkillProblem,
  type Skills,
} from '../core/skills.js';
import { bundleOf, type Conditions } from './bundle.js';

/** The host for skills' conditions: its programs, and the gateway's environment. */
export interface SkillHost {
  platform: string;
  /** Whether an executable of this name exists. */
  has(program: string): boolean;
  isSet(variable: string): boolean;
}

export function systemHost(env = process.env, platform: string = process.platform): SkillHost {
  const folders = (env.PATH ?? '').split(delimiter).filter(isAbsolute);
  return {
    platform,
    isSet: (variable) => (env[variable] ?? '') !== '',
    has: (program) =>
      folders.some((folder) => {
        // Without exceptions, which are slow: this runs for every answer.
        const found = statSync(join(folder, program), { throwIfNoEntry: false });
        return found?.isFile() === true && (found.mode & 0o111) !== 0;
      }),
  };
}

/** Why a skill cannot be used here, as a sentence ending for an operator; null if it can. */
export function unmet(
  { platforms, programs, anyPrograms, variables }: Conditions,
  { platform, has, isSet }: SkillHost,
): string | null {
  if (platforms !== null && !platforms.includes(platform)) {
    return `it is for ${platforms.join(', ') || 'no system at all'}, and this is ${platform}`;
  }
  const missing = [...new Set(programs)].filter((program) => !has(program));
  if (missing.length > 0) return `it needs ${missing.join(', ')}, which is not installed here`;
  if (anyPrograms.length > 0 && !anyPrograms.some(has)) {
    return `it needs one of ${anyPrograms.join(', ')}, and none is installed here`;
  }
  const unset = [...new Set(variables)].filter((variable) => !isSet(variable));
  if (unset.length > 0) return `it needs ${unset.join(', ')} in the environment, which is not set`;
  return null;
}

const MOST_FILES = 100;

/** The instructions of a loaded skill, with its folder and files. `at`: the folder's path for the reader. */
async function instructionsOf(skill: Skill, body: string, at: string): Promise<string> {
  const files = (await filesOf(skill)).map((file) => `${at}/${file}`);
  const more = files.length > MOST_FILES ? ['…and more'] : [];
  const list = [...files.slice(0, MOST_FILES), ...more].join('\n');
  const lists = list === '' ? '' : `\n\nIts files (read_file reads them):\n${list}`;
  return `# Skill: ${skill.name}\n\nIt lies in ${at}.${lists}\n\n${body.replaceAll('{baseDir}', at)}`;
}

/** Relative to its folder, without links and hidden files, sorted; at most one more than is listed. */
async function filesOf({ folder }: Skill): Promise<string[]> {
  const names: string[] = [];
  await within(folder, [], async (root) => {
    const isHidden = (name: string) => name.startsWith('.') || name === 'node_modules';
    for await (const { kind, name, path } of entriesBelow(root, (entry) => !isHidden(entry.name))) {
      if (kind !== 'file' || isHidden(name) || path === 'SKILL.md') continue;
      names.push(path);
      if (names.length > MOST_FILES) break;
    }
  });
  return names.sort();
}

const MOST_BYTES = 256_000;
/** Further folders are ignored: each one is checked for every answer. */
const MOST_FOLDERS = 500;
/** MicroClaw accepts both. */
const FILES = ['SKILL.md', 'skill.md'];

type Read = ReturnType<typeof bundleOf>;

interface BundlePlace {
  /** Path below the folder of skills, with `/` as separator. */
  place: string;
  /** Links resolved. */
  folder: string;
  /** Links not resolved: a skill without a name is called as its folder is here. */
  file: string;
}

const NO_FILE = { ok: false as const, why: 'it has no SKILL.md' };
const TO_ITSELF = 'it is a link to the folder of skills itself';
const TOO_MANY = `there are more than ${MOST_FOLDERS} folders; those after them are not looked at`;
const NOWHERE = 'it is a link that leads nowhere';
const LEADS_OUT = 'it is a link that leads out of the folder of skills';

/** `folder`: `data/skills`. */
export function createSkills({ folder, log, ...host }: SkillHost & { folder: string; log: Log }): Skills {
  /** The problems logged last. */
  let told = '';
  const readBundle = readUnlessUnchanged<Read>(NO_FILE, async (path) => {
    const found = statSync(path);
    if (!found.isFile()) return { ok: false, why: 'its SKILL.md is no file' };
    if (found.size > MOST_BYTES) {
      return { ok: false, why: `its SKILL.md has more than ${sizeInWords(MOST_BYTES)}` };
    }
    const bytes = await readIfThere(path, MOST_BYTES);
    return bytes === null ? NO_FILE : bundleOf(bytes.toString('utf8'), basename(dirname(path)));
  });

  async function look({ file }: BundlePlace): Promise<Read> {
    const read = await readBundle(file).catch((error): Read => ({ ok: false, why: describe(error) }));
    const why = read.ok ? unmet(read.bundle.conditions, host) : null;
    return why === null ? read : { ok: false, why };
  }

  /** Sorted by folder name, so that of two skills with one name the same always wins. */
  async function lookAtAll() {
    const there = new Map<string, { skill: Skill; body: string }>();
    const { bundles, problems, areMore } = await bundlesIn(folder);
    const remarks: SkillProblem[] = [];
    for (const bundle of bundles) {
      const { place } = bundle;
      const looked = await look(bundle);
      if (!looked.ok) {
        problems.push({ name: place, why: looked.why });
        continue;
      }
      const { name, description, loadedBy, body } = looked.bundle;
      if (there.has(name)) {
        problems.push({ name: place, why: `another skill is called ${name}, too` });
        continue;
      }
      there.set(name, { skill: { name, description, folder: bundle.folder, place, loadedBy }, body });
      remarks.push(...looked.bundle.remarks.map((why) => ({ name: place, why })));
    }
    const skills = [...there.values()].map(({ skill }) => skill);
    skills.sort((one, other) => (one.name < other.name ? -1 : 1));
    const [first, ...left] = catalogueOf(skills).left;
    if (first !== undefined) {
      const which = left.length === 0 ? first.name : `${first.name} and ${left.length} after it`;
      const why = `${which} are not named in prompts, which show ${CATALOGUE_CHARS} characters of names and descriptions`;
      remarks.push({ name: 'skills', why });
    }
    problems.sort((one, other) => (one.name < other.name ? -1 : 1));
    if (areMore) problems.push({ name: 'skills', why: TOO_MANY });
    tell({ problems, remarks });
    return { there, skills, problems, remarks };
  }

  function tell({ problems, remarks }: Omit<FoundSkills, 'skills'>): void {
    const now = JSON.stringify([problems, remarks]);
    if (now === told) return;
    told = now;
    for (const { name, why } of problems) log.warn({ skill: name, why }, 'skill skipped');
    for (const { name, why } of remarks)
      log.warn({ skill: name, why }, 'skill offered, but not as its file says');
  }

  return {
    async list() {
      const { skills, problems, remarks } = await lookAtAll();
      return { skills, problems, remarks };
    },
    async load(name, { by, paths }) {
      const { there, skills } = await lookAtAll();
      const found = there.get(composed(name));
      if (found !== undefined && mayLoad(found.skill, by)) {
        const { skill, body } = found;
        const at = paths === 'real' ? skill.folder : `skills/${skill.place}`;
        return { ok: true, skill, text: await instructionsOf(skill, body, at) };
      }
      const called = JSON.stringify(name.slice(0, 100));
      if (found !== undefined) {
        const why = by === 'models' ? 'loaded only by people, with /skill' : 'not for people to load';
        return { ok: false, reason: `The skill ${called} is ${why}; it says so itself.` };
      }
      const names = skills.filter((skill) => mayLoad(skill, by)).map((skill) => skill.name);
      const list = names.length === 0 ? 'There are none.' : `There are: ${names.join(', ')}.`;
      return { ok: false, reason: `There is no skill called ${called}. ${list}` };
    },
  };
}

/**
 * Each folder with a SKILL.md, once, sorted by name, and in the others their subfolders with one. A link in the
 * folder of skills may lead anywhere, for an operator made it; links below it may not leave its target.
 */
async function bundlesIn(folder: string) {
  const bundles = new Map<string, BundlePlace>();
  const problems: SkillProblem[] = [];
  const problem = (name: string, why: string) => void problems.push({ name, why });
  const top = realOf(folder) ?? folder;
  let looked = 0;

  /** `group`: null for the folder of skills itself. Returns whether it has a skill, or a problem. */
  async function look(at: string, group: { name: string; bound: string } | null): Promise<boolean> {
    const names = await foldersIn(at).catch((error: unknown) =>
      problem(group?.name ?? 'skills', describe(error)),
    );
    let isFound = names === undefined;
    for (const name of names ?? []) {
      if (++looked > MOST_FOLDERS) return true;
      const place = group === null ? name : `${group.name}/${name}`;
      const path = join(at, name);
      const real = realOf(path);
      const bound =
        real === null ? null : group === null ? topBoundOf(real, top) : boundOf(real, group.bound);
      if (real === null || bound === null) {
        problem(place, real === null ? NOWHERE : group === null ? TO_ITSELF : LEADS_OUT);
        continue;
      }
      const file = fileIn(path);
      if (file !== null) {
        isFound = true;
        if (!isBelow(file.real, bound)) problem(place, LEADS_OUT);
        else if (!bundles.has(real)) bundles.set(real, { place, folder: real, file: file.path });
      } else if (group === null && !(await look(real, { name, bound }))) problem(name, NO_FILE.why);
    }
    return isFound;
  }

  await look(top, null);
  return { bundles: [...bundles.values()], problems, areMore: looked > MOST_FOLDERS };
}

/** The target, for a link that leads out; null for one to the folder of skills, or to a folder above. */
function topBoundOf(real: string, top: string): string | null {
  if (real === top || isBelow(top, real)) return null;
  return isBelow(real, top) ? top : real;
}

/** Bound of a bundle's files. A link may also lead into any folder called `skills`; null: elsewhere. */
function boundOf(real: string, bound: string): string | null {
  if (isBelow(real, bound)) return bound;
  return basename(dirname(real)) === 'skills' && fileIn(real) !== null ? real : null;
}

function fileIn(folder: string): { path: string; real: string } | null {
  for (const called of FILES) {
    const path = join(folder, called);
    const real = realOf(path);
    if (real !== null) return { path, real };
  }
  return null;
}

/** Sorted by name, without hidden ones; none if it does not exist. */
async function foldersIn(folder: string): Promise<string[]> {
  const entries = (await readdir(folder, { withFileTypes: true }).catch(nullIfMissing)) ?? [];
  const folders = entries.filter((entry) => entry.isDirectory() || entry.isSymbolicLink());
  return folders
    .map(({ name }) => name)
    .filter((name) => !name.startsWith('.'))
    .sort();
}

/** null for a missing file. Synchronous, because it checks some files of each skill for every answer. */
function realOf(path: string): string | null {
  try {
    return realpathSync.native(path);
  } catch {
    return null;
  }
}

function isBelow(path: string, root: string): boolean {
  return path.startsWith(root + sep);
}
