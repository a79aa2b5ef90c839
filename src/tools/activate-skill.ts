/** `activate_skill`: the instructions of a skill named in the prompt, trusted like the principles. */
import * as z from 'zod';
import type { Skills } from '../core/skills.js';
import { defineTool } from './authorise.js';
import { done, failed, shown } from './results.js';

export function activateSkill(skills: Skills) {
  return defineTool({
    name: 'activate_skill',
    description: 'Loads the instructions of a skill. Call it before you do what the skill is for.',
    hint: 'load the instructions of a skill',
    parameters: z.object({ name: z.string().describe('As the list of skills has it.') }),
    risk: 'low',
    forAgents: true,
    async execute({ name }, _context, { caller }) {
      // An agent sees real paths; `skills/` may be one of its own folders.
      const paths = caller.agent === undefined ? 'placed' : 'real';
      const found = await skills.load(name.trim(), { by: 'models', paths });
      return found.ok ? done(shown(found.text)) : failed(found.reason);
    },
  });
}
