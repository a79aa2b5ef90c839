/**
 * Skills: bundles in the open Agent Skills format, `data/skills/<name>/SKILL.md`. Operators put them there; a model sees
 * their names and what they are for, and loads one when it needs it. Nothing in them runs by itself.
 */
import { cutMarker } from './cut.js';
import { nameInPrompt } from './elements.js';

export interface Skill {
  /** As models and people call it; no line breaks. */
  name: string;
  /** On one line, at most `MOST_DESCRIPTION` characters, and a marker where there were more. */
  description: string;
  /** Where the bundle lies, links followed. */
  folder: string;
  /** Where it lies in the folder of skills: `pdf`, `office/pdf`. */
  place: string;
  /** Who may have it loaded: a model that finds it useful, a person by `/skill`. */
  loadedBy: 'anybody' | 'people' | 'models';
}

/** Of the open format, in characters. */
export const MOST_DESCRIPTION = 1_024;
/** What a prompt shows of all skills together, in characters. */
export const CATALOGUE_CHARS = 24_000;

export interface SkillProblem {
  /** The folder's name. */
  name: string;
  /** A sentence's end for operators. */
  why: string;
}

export interface FoundSkills {
  /** By name. */
  skills: Skill[];
  /** What is not offered: it is broken, or a condition does not hold here. */
  problems: SkillProblem[];
  /** What is offered, but not as its file has it. */
  remarks: SkillProblem[];
}

export interface Skills {
  /** As the files are now. Never rejects: what cannot be read is a problem. */
  list(): Promise<FoundSkills>;
  /**
   * Its instructions, with its files. `paths`: whether its folder is called by its place (`skills/pdf`) or its real path.
   * `ok: false`: a sentence for whoever asked, which names those that exist.
   */
  load(
    name: string,
    ask: { by: 'models' | 'people'; paths: 'placed' | 'real' },
  ): Promise<{ ok: true; skill: Skill; text: string } | { ok: false; reason: string }>;
}

export function mayLoad({ loadedBy }: Pick<Skill, 'loadedBy'>, by: 'models' | 'people'): boolean {
  return loadedBy === 'anybody' || loadedBy === by;
}

/**
 * What a prompt says of the skills that a model may load: a line each, as many as fit, with a marker where more do not; and
 * those that do not.
 */
export function catalogueOf(skills: readonly Skill[]): { lines: string[]; left: Skill[] } {
  const lines: string[] = [];
  const left: Skill[] = [];
  let chars = 0;
  for (const skill of skills.filter((each) => mayLoad(each, 'models'))) {
    const line = `- ${nameInPrompt(skill.name)}: ${nameInPrompt(skill.description)}`;
    chars += line.length + 1;
    if (chars <= CATALOGUE_CHARS) lines.push(line);
    else left.push(skill);
  }
  if (left.length > 0) lines.push(cutMarker('skills-max-chars', CATALOGUE_CHARS));
  return { lines, left };
}
