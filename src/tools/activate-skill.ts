/**
 * `activate_skill`: the instructions of a skill that the prompt names. They are the operator's words, as the principles
 * are; what they tell to run still needs the tools that the turn has.
 */
import * as z from 'zod';
import { entriesBelow, within } from '../core/beneath.js';
import type { Skill, Skills } from '../core/skills.js';
import type { Tool } from '../core/tool.js';
import { authorise } from './authorise.js';
import { done, failed, shown } from './results.js';

const parameters = z.object({ name: z.string().describe('As the list of skills has it.') });

const MOST_FILES = 100;

export function activateSkill(skills: Pick<Skills, 'load'>): Tool<z.infer<typeof parameters>> {
  return {
    name: 'activate_skill',
    description: 'Loads the instructions of a skill. Call it before you do what the skill is for.',
    hint: 'load the instructions of a skill',
    parameters,
    risk: 'low',
    async execute({ name }, context) {
      const allowed = await authorise(context, {}, 'agents too');
      if (!allowed.ok) return failed(allowed.reason);
      const found = await skills.load(name.trim(), 'models');
      if (!found.ok) return failed(found.reason);
      const { skill, text } = found;
      const files = await filesOf(skill);
      const lists = files.length === 0 ? '' : `\n\nIts files:\n${files.join('\n')}`;
      const body = text.replaceAll('{baseDir}', skill.folder);
      return done(shown(`# Skill: ${skill.name}\n\nIt lies in ${skill.folder}.${lists}\n\n${body}`));
    },
  };
}

/** Relative to its folder, without links and what is hidden. */
async function filesOf({ folder }: Skill): Promise<string[]> {
  const names: string[] = [];
  let isMore = false;
  await within(folder, [], async (root) => {
    const isHidden = (name: string) => name.startsWith('.') || name === 'node_modules';
    for await (const { kind, name, path } of entriesBelow(root, (entry) => !isHidden(entry.name))) {
      if (kind !== 'file' || isHidden(name) || path === 'SKILL.md') continue;
      isMore = names.length === MOST_FILES;
      if (isMore) break;
      names.push(path);
    }
  });
  names.sort();
  return isMore ? [...names, '…and more'] : names;
}
