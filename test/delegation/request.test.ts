/** What stands in the request with which an agent begins. */
import { expect, it } from 'vitest';
import { createZone } from '../../src/core/dates.js';
import { planText } from '../../src/core/plan.js';
import type { Task } from '../../src/core/task.js';
import { requestOf } from '../../src/delegation/request.js';

it('a plan in steps stands there as it would in task.md', async () => {
  const plan = { goal: 'Move', steps: [{ id: 's1', title: 'Pack\n- [x] Go', status: 'blocked' }] };
  const [system] = await requestOf(
    {
      agents: { memory: async () => ({ longTerm: '', daily: '' }) },
      workspace: { shown: async () => ({ bootstrap: [], memory: '', dailyLog: '', plan: 'another' }) },
      skills: { list: async () => ({ skills: [], problems: [] }) },
      ...{ zone: createZone('UTC'), memoryChars: 12_000 },
    },
    {
      task: {
        goal: 'go',
        request: { messages: [], plan, artifacts: [], memory: [], viap: null },
      } as never as Task,
      agent: {
        ...{ id: 'utility', model: null, prompt: 'Work.', tools: [] },
        ...{ timeoutMinutes: null, maxRounds: null },
      },
      place: { id: 'utility', taskId: 't', cwd: '/w', roots: ['/w'], space: '/s', env: {} },
      ...{ viap: null, isOwners: true, hasSkills: false, now: 0 },
    },
  );
  expect(system?.content).toContain(`# Plan\n\n\`\`\`text\n${planText(plan).trim()}\n\`\`\``);
});
