/** Skills, `data/skills/<name>/SKILL.md`: a model sees names and descriptions and loads a skill on demand. */
import { cutMarker } from './cut.js';
import { nameInPrompt } from './origin.js';

export interface Skill {
  name: string;
  /** One line of at most `MOST_DESCRIPTION` characters. */
  description: string;
  /** Links resolved. */
  folder: string;
  /** Below the skills folder: `pdf`, `office/pdf`. */
  place: string;
  /** people: by `/skill`. */
  loadedBy: 'anybody' | 'people' | 'models';
}

/** Of the open format, in characters. */
export const MOST_DESCRIPTION = 1_024;

/** In characters, in a prompt. */
export const CATALOGUE_CHARS = 24_000;

export interface SkillProblem {
  name: string;
  /** End of a sentence. */
  why: string;
}

export interface FoundSkills {
  skills: Skill[];
  /** Broken, or with an unmet condition. */
  problems: SkillProblem[];
  /** Offered, but not as written in their file. */
  remarks: SkillProblem[];
}

export interface Skills {
  /** Never rejects: unreadable skills are problems. */
  list(): Promise<FoundSkills>;
  /** `paths`: names its folder by place (`skills/pdf`) or real path. `reason` lists the existing skills. */
  load(
    name: string,
    ask: { by: 'models' | 'people'; paths: 'placed' | 'real' },
  ): Promise<{ ok: true; skill: Skill; text: string } | { ok: false; reason: string }>;
}

export function mayLoad({ loadedBy }: Skill, by: 'models' | 'people'): boolean {
  return loadedBy === 'anybody' || loadedBy === by;
}

/** A line each within the limit, with a marker if cut; `left`: skills that do not fit. */
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
