/**
 * Skills: bundles in the open Agent Skills format, `data/skills/<name>/SKILL.md`. Operators put them there; a model sees
 * their names and what they are for, and loads one when it needs it. Nothing in them runs by itself.
 */

export interface Skill {
  name: string;
  description: string;
  /** Where the bundle lies, links followed. */
  folder: string;
}

export interface SkillProblem {
  /** The folder's name. */
  name: string;
  /** A sentence for operators: it is broken, or a condition does not hold here. */
  why: string;
}

export interface Skills {
  /** As the files are now, by name. Never rejects: what cannot be read is a problem. */
  list(): Promise<{ skills: Skill[]; problems: SkillProblem[] }>;
  /** `ok: false`: a sentence for the model, which names those that exist. */
  load(name: string): Promise<{ ok: true; skill: Skill; text: string } | { ok: false; reason: string }>;
}
