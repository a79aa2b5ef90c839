/** What stands in the request with which an agent begins. */
import { expect, it } from 'vitest';
import { createZone } from '../../src/core/dates.js';
import type { Skill, Skills } from '../../src/core/skills.js';
import { type Agents, planText, type Task } from '../../src/core/task.js';
import type { Clipboard, Workspace } from '../../src/core/workspace.js';
import { openingRequest } from '../../src/delegation/request.js';

const NO_PLAN = { goal: 'go', request: { messages: [], plan: null, artifacts: [], memory: [], viap: null } };

async function promptOf(task: object, tools: string[] = [], skills: Skill[] = []): Promise<string> {
  const { messages } = await openingRequest(
    {
      agents: { memory: async () => ({ longTerm: '', daily: '', origin: 'inside' }) } as unknown as Agents,
      workspace: {
        shown: async () => ({
          bootstrap: [],
          memory: '',
          dailyLog: '',
          plan: 'another',
          origin: 'inside' as const,
        }),
      } as unknown as Workspace,
      skills: { list: async () => ({ skills, problems: [], remarks: [] }) } as unknown as Skills,
      clipboard: {
        shown: async (owner) =>
          'agent' in owner && owner.chatId === undefined ? `1. of ${owner.agent}` : '',
      } as Clipboard,
      ...{ zone: createZone('UTC'), memoryChars: 12_000 },
    },
    {
      task: task as Task,
      agent: {
        ...{ id: 'utility', model: null, prompt: 'Work.', tools: [] },
        ...{ timeoutMinutes: null, maxRounds: null },
      },
      place: {
        id: 'utility',
        taskId: 't',
        cwd: '/w',
        roots: ['/w'],
        space: '/s',
        shared: { folder: '/shared', mayWrite: true },
        env: {},
      },
      ...{ viap: null, isOwners: true, tools: new Set(tools), now: 0 },
    },
  );
  return messages[0]?.content ?? '';
}

it('a plan in steps stands there as it would in task.md', async () => {
  const plan = { goal: 'Move', steps: [{ id: 's1', title: 'Pack\n- [x] Go', status: 'blocked' }] };
  const prompt = await promptOf({ ...NO_PLAN, request: { ...NO_PLAN.request, plan } });
  expect(prompt).toContain(`# Plan\n\n\`\`\`text\n${planText(plan).trim()}\n\`\`\``);
});

it('its own clipboard stands there if it has one', async () => {
  expect(await promptOf(NO_PLAN)).not.toContain('# Clipboard');
  expect(await promptOf(NO_PLAN, ['manage_clipboard'])).toMatch(
    /# Clipboard\n\n.*\n\n```text\n1\. of utility\n/,
  );
});

it('skills that it may load are named if it can, as many as fit', async () => {
  const skill = (n: number): Skill => ({
    ...{ name: `s${n}`, description: 'x'.repeat(1_000), folder: '/s', place: `s${n}` },
    loadedBy: n === 0 ? 'people' : 'anybody',
  });
  const skills = Array.from({ length: 40 }, (_, n) => skill(n));
  expect(await promptOf(NO_PLAN, [], skills)).not.toContain('# Skills');
  const prompt = await promptOf(NO_PLAN, ['activate_skill'], skills);
  expect(prompt).not.toContain('- s0:');
  expect(prompt.match(/\n- s\d+:/g)).toHaveLength(23);
  expect(prompt).toContain('\n<<truncated due to skills-max-chars=24000>>');
});
