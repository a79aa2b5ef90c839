/**
 * The bundles below `data/skills`, as they are now: each folder is looked at for every catalogue, and read when it has
 * changed. Operators put them there, by hand or by unpacking what others made, so a broken one costs nothing but itself,
 * and nothing that lies outside is reached through one.
 */
import { realpathSync, type Stats, statSync } from 'node:fs';
import { open, readdir, realpath } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { sizeInWords } from '../core/bytes.js';
import { describe } from '../core/errors.js';
import type { Log } from '../core/log.js';
import { composed } from '../core/names-on-disk.js';
import type { Skill, SkillProblem, Skills } from '../core/skills.js';
import { bundleOf } from './bundle.js';
import { type Host, unmet } from './host.js';

export interface SkillsParts extends Host {
  /** `data/skills` */
  folder: string;
  log: Log;
}

const MOST_BYTES = 256_000;
/** More are not even looked at: each is, for every answer. */
const MOST_FOLDERS = 500;
/** MicroClaw takes both. */
const FILES = ['SKILL.md', 'skill.md'];
/** A change within the coarsest tick that file systems have does not show in the times of a file. */
const TICK_MS = 2_000;

type Read = ReturnType<typeof bundleOf>;

interface Kept {
  stamp: string;
  read: Read;
}

/** A bundle where it really lies. */
interface Found {
  folder: string;
  file: string;
}

export function createSkills({ folder, log, ...host }: SkillsParts): Skills {
  /** By the path of the file. */
  const kept = new Map<string, Kept>();
  /** Of what is wrong, what was logged last. */
  let told = '';

  function find(root: string, name: string): Found | { why: string } {
    const real = realOf(join(root, name));
    if (real === null) return { why: 'it is a link that leads nowhere' };
    if (!isBelow(real, root)) return { why: LEADS_OUT };
    for (const called of FILES) {
      const file = realOf(join(real, called));
      if (file === null) continue;
      return isBelow(file, root) ? { folder: real, file } : { why: LEADS_OUT };
    }
    return { why: 'it has no SKILL.md' };
  }

  async function readBundle(file: string): Promise<Read> {
    const found = statSync(file);
    if (!found.isFile()) return { ok: false, why: 'its SKILL.md is no file' };
    if (found.size > MOST_BYTES) {
      return { ok: false, why: `its SKILL.md has more than ${sizeInWords(MOST_BYTES)}` };
    }
    const stamp = stampOf(found);
    const before = kept.get(file);
    if (before?.stamp === stamp) return before.read;
    const read = bundleOf(await textOf(file));
    if (Math.max(found.mtimeMs, found.ctimeMs) < Date.now() - TICK_MS) kept.set(file, { stamp, read });
    else kept.delete(file);
    return read;
  }

  async function look(root: string, name: string): Promise<{ skill: Skill; body: string } | { why: string }> {
    const found = find(root, name);
    if ('why' in found) return found;
    const read = await readBundle(found.file);
    if (!read.ok) return read;
    const why = unmet(read.bundle.conditions, host);
    if (why !== null) return { why };
    const { name: called, description, body } = read.bundle;
    return { skill: { name: composed(called), description, folder: found.folder }, body };
  }

  /** By the names of their folders, so that of two with one name it is always the same that counts. */
  async function lookAtAll() {
    const there = new Map<string, { skill: Skill; body: string }>();
    const problems: SkillProblem[] = [];
    const { root, names } = await foldersIn(folder).catch((error: unknown) => {
      problems.push({ name: 'skills', why: describe(error) });
      return { root: folder, names: [] };
    });
    for (const name of names.slice(0, MOST_FOLDERS)) {
      const found = await look(root, name).catch((error: unknown) => ({ why: describe(error) }));
      if ('why' in found) problems.push({ name, why: found.why });
      else if (there.has(found.skill.name)) {
        problems.push({ name, why: `another skill is called ${found.skill.name}, too` });
      } else there.set(found.skill.name, found);
    }
    if (names.length > MOST_FOLDERS) {
      problems.push({
        name: 'skills',
        why: `there are ${names.length} folders; ${MOST_FOLDERS} are looked at`,
      });
    }
    tell(problems);
    return { there, problems };
  }

  function tell(problems: SkillProblem[]): void {
    const now = JSON.stringify(problems);
    if (now === told) return;
    told = now;
    for (const { name, why } of problems) log.warn({ skill: name, why }, 'a skill is not offered');
  }

  return {
    async list() {
      const { there, problems } = await lookAtAll();
      const skills = [...there.values()].map(({ skill }) => skill);
      return { skills: skills.sort((one, other) => (one.name < other.name ? -1 : 1)), problems };
    },
    async load(name) {
      const { there } = await lookAtAll();
      const found = there.get(composed(name));
      if (found !== undefined) return { ok: true, skill: found.skill, text: found.body };
      const names = [...there.keys()].sort();
      const list = names.length === 0 ? 'There are none.' : `There are: ${names.join(', ')}.`;
      return { ok: false, reason: `There is no skill called ${JSON.stringify(name.slice(0, 100))}. ${list}` };
    },
  };
}

const LEADS_OUT = 'it is a link that leads out of the folder of skills';

/** In the order of their names; what is hidden, and files, are none. */
async function foldersIn(folder: string): Promise<{ root: string; names: string[] }> {
  try {
    const root = await realpath(folder);
    const entries = await readdir(root, { withFileTypes: true });
    const folders = entries.filter((entry) => entry.isDirectory() || entry.isSymbolicLink());
    const names = folders.map(({ name }) => name).filter((name) => !name.startsWith('.'));
    return { root, names: names.sort() };
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT')
      return { root: folder, names: [] };
    throw error;
  }
}

/** No more than was looked for, also where it grows meanwhile. */
async function textOf(file: string): Promise<string> {
  const handle = await open(file, 'r');
  try {
    const bytes = Buffer.alloc(MOST_BYTES);
    const { bytesRead } = await handle.read(bytes, 0, MOST_BYTES, 0);
    return bytes.toString('utf8', 0, bytesRead);
  } finally {
    await handle.close();
  }
}

/** null where nothing is. Asked for some files of each skill for every answer, which in the background takes longer. */
function realOf(path: string): string | null {
  try {
    return realpathSync.native(path);
  } catch {
    return null;
  }
}

function stampOf({ mtimeMs, ctimeMs, size, ino, dev }: Stats): string {
  return [mtimeMs, ctimeMs, size, ino, dev].join();
}

function isBelow(path: string, root: string): boolean {
  return path.startsWith(root + sep);
}
