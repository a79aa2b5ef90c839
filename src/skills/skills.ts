/** The skills below `data/skills`, alone or in groups. A broken one affects no other; links lead out of none. */
import { realpathSync, statSync } from 'node:fs';
import { readdir, realpath } from 'node:fs/promises';
import { basename, delimiter, dirname, isAbsolute, join, sep } from 'node:path';
import { entriesBelow, within } from '../core/beneath.js';
import { sizeInWords } from '../core/cut.js';
import { describe } from '../core/errors.js';
import { isMissing, readIfThere } from '../core/file-access.js';
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
  const endings = platform === 'win32' ? ['.exe', '.cmd', '.bat', ''] : [''];
  return {
    platform,
    isSet: (variable) => (env[variable] ?? '') !== '',
    has: (program) =>
      folders.some((folder) =>
        endings.some((ending) => {
          // Without exceptions, which are slow: this runs for every answer.
          const found = statSync(join(folder, program + ending), { throwIfNoEntry: false });
          return found?.isFile() === true && (platform === 'win32' || (found.mode & 0o111) !== 0);
        }),
      ),
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
  for (const some of anyPrograms) {
    if (!some.some(has)) return `it needs one of ${some.join(', ')}, and none is installed here`;
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
  name: string;
  /** Links resolved. */
  folder: string;
  file: string;
  /** Its file must be inside this folder. */
  bound: string;
}

/** `folder`: `data/skills`. */
export function createSkills({ folder, log, ...host }: SkillHost & { folder: string; log: Log }): Skills {
  const readBundle = bundleReader();
  /** The problems logged last. */
  let told = '';

  async function look({ name, file, bound }: BundlePlace): Promise<Read> {
    if (!isBelow(file, bound)) return { ok: false, why: LEADS_OUT };
    const read = await readBundle(file, name);
    const why = read.ok ? unmet(read.bundle.conditions, host) : null;
    return why === null ? read : { ok: false, why };
  }

  /** Sorted by folder name, so that of two skills with one name the same always wins. */
  async function lookAtAll() {
    const there = new Map<string, { skill: Skill; body: string }>();
    const problems: SkillProblem[] = [];
    const remarks: SkillProblem[] = [];
    const seen = new Set<string>();
    const problem = (name: string, why: string) => void problems.push({ name, why });
    for await (const found of bundlesIn(folder, problem)) {
      // A link may make it appear twice.
      if (seen.has(found.folder)) continue;
      seen.add(found.folder);
      const { place } = found;
      const looked = await look(found).catch((error: unknown) => ({
        ok: false as const,
        why: describe(error),
      }));
      if (!looked.ok) {
        problem(place, looked.why);
        continue;
      }
      const { name, description, loadedBy, body } = looked.bundle;
      if (there.has(name)) {
        problem(place, `another skill is called ${name}, too`);
        continue;
      }
      there.set(name, { skill: { name, description, folder: found.folder, place, loadedBy }, body });
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
      if (found !== undefined) return { ok: false, reason: refusal(called, by) };
      const names = skills.filter((skill) => mayLoad(skill, by)).map((skill) => skill.name);
      const list = names.length === 0 ? 'There are none.' : `There are: ${names.join(', ')}.`;
      return { ok: false, reason: `There is no skill called ${called}. ${list}` };
    },
  };
}

/** By the name of the bundle's folder. Rereads a file only when it has changed. */
function bundleReader(): (file: string, name: string) => Promise<Read> {
  const missing: Read = { ok: false, why: 'it has no SKILL.md' };
  const readers = new Map<string, (file: string) => Promise<Read>>();
  return (file, name) => {
    const reader =
      readers.get(name) ??
      readUnlessUnchanged(missing, async (path) => {
        const found = statSync(path);
        if (!found.isFile()) return { ok: false, why: 'its SKILL.md is no file' };
        if (found.size > MOST_BYTES) {
          return { ok: false, why: `its SKILL.md has more than ${sizeInWords(MOST_BYTES)}` };
        }
        const bytes = await readIfThere(path, MOST_BYTES);
        return bytes === null ? missing : bundleOf(bytes.toString('utf8'), name);
      });
    readers.set(name, reader);
    return reader(file);
  };
}

function refusal(called: string, by: 'models' | 'people'): string {
  return by === 'models'
    ? `The skill ${called} is loaded only by people, with /skill; it says so itself.`
    : `The skill ${called} is not for people to load; it says so itself.`;
}

const LEADS_OUT = 'it is a link that leads out of the folder of skills';

/**
 * Each folder with a SKILL.md, sorted by name, and in the others their subfolders with one. A link in the
 * folder of skills may lead anywhere, for an operator made it; links below it may not leave its target.
 */
async function* bundlesIn(
  folder: string,
  problem: (name: string, why: string) => void,
): AsyncGenerator<BundlePlace> {
  let looked = 0;
  const isTooMuch = () => {
    looked++;
    if (looked === MOST_FOLDERS + 1) {
      problem('skills', `there are more than ${MOST_FOLDERS} folders; those after them are not looked at`);
    }
    return looked > MOST_FOLDERS;
  };
  const { root, names } = await foldersIn(folder).catch((error: unknown) => {
    problem('skills', describe(error));
    return { root: folder, names: [] };
  });
  for (const name of names) {
    if (isTooMuch()) return;
    const real = realOf(join(root, name));
    if (real === null) {
      problem(name, 'it is a link that leads nowhere');
      continue;
    }
    if (real === root || isBelow(root, real)) {
      problem(name, 'it is a link to the folder of skills itself');
      continue;
    }
    const bound = isBelow(real, root) ? root : real;
    const file = fileIn(real);
    if (file !== null) {
      yield { place: name, name, folder: real, bound, file };
      continue;
    }
    const inner = await foldersIn(real).catch((error: unknown) => {
      problem(name, describe(error));
      return null;
    });
    let isGroup = false;
    for (const child of inner?.names ?? []) {
      if (isTooMuch()) return;
      const childReal = realOf(join(real, child));
      const place = `${name}/${child}`;
      const childBound = childReal === null ? null : boundOf(childReal, bound);
      if (childReal === null || childBound === null) {
        problem(place, childReal === null ? 'it is a link that leads nowhere' : LEADS_OUT);
        continue;
      }
      const childFile = fileIn(childReal);
      if (childFile === null) continue;
      isGroup = true;
      yield { place, name: child, folder: childReal, bound: childBound, file: childFile };
    }
    if (inner !== null && !isGroup) problem(name, 'it has no SKILL.md');
  }
}

/** Bound of a bundle's files. A link may also lead into any folder called `skills`; null: elsewhere. */
function boundOf(real: string, bound: string): string | null {
  if (isBelow(real, bound)) return bound;
  return basename(dirname(real)) === 'skills' && fileIn(real) !== null ? real : null;
}

/** The real path of a bundle's file, if it has one. */
function fileIn(folder: string): string | null {
  return FILES.map((called) => realOf(join(folder, called))).find((file) => file !== null) ?? null;
}

/** Sorted by name, without hidden ones. */
async function foldersIn(folder: string): Promise<{ root: string; names: string[] }> {
  try {
    const root = await realpath(folder);
    const entries = await readdir(root, { withFileTypes: true });
    const folders = entries.filter((entry) => entry.isDirectory() || entry.isSymbolicLink());
    const names = folders.map(({ name }) => name).filter((name) => !name.startsWith('.'));
    return { root, names: names.sort() };
  } catch (error) {
    if (isMissing(error)) return { root: folder, names: [] };
    throw error;
  }
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
