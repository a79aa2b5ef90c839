/**
 * `activate_skill`: the instructions of a skill that the prompt names. They are the operator's words, as the principles
 * are; what they tell to run still needs the tools that the turn has.
 */
import * as z from 'zod';
import type { Skills } from '../core/persona.js';
import type { Tool } from '../core/tool.js';
import { authorise } from './authorise.js';
import { done, failed, shown } from './results.js';

const parameters = z.object({ name: z.string().describe('As the list of skills has it.') });

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
      // An agent has folders under their own paths, and `skills/` may be one of its own.
      const paths = allowed.caller.agent === undefined ? 'placed' : 'real';
      const found = await skills.load(name.trim(), { by: 'models', paths });
      return found.ok ? done(shown(found.text)) : failed(found.reason);
    },
  };
}
