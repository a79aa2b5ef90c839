/**
 * The flow of seed 003 with the real process: a program submits a task with plan and artifacts, gets references, and
 * whoever asks next, after a restart and from another channel, sees the plan as the task left it.
 */
import { afterEach, expect, it } from 'vitest';
import type { ChatBody } from '../fakes/model.js';
import { ANNA } from '../fakes/telegram-chats.js';
import { eventually } from '../harness/gateway.js';
import { type Stage, stage } from '../harness/telegram.js';

const CHAT = `telegram_${ANNA.id}`;
const BOB = { id: 4711, first_name: 'Bob' };
let on: Stage;
afterEach(() => on.close());

const systemOf = (body: ChatBody | undefined) => body?.messages[0]?.content ?? '';

it('a task with plan and artifacts ends with references, and its plan is seen from another channel after a restart', async () => {
  on = await stage({
    config: {
      access: { direct: 'open', owners: [CHAT], control_chats: [CHAT] },
      tools: { allow: ['memory', 'files', 'artifacts'] },
    },
  });
  const bodies: ChatBody[] = [];
  on.model.reply((body) => {
    bodies.push(body);
    const results = body.messages.filter(({ role }) => role === 'tool').length;
    if (!JSON.stringify(body.messages).includes('Write the report')) return 'hello';
    if (results === 0) {
      return {
        calls: [
          { name: 'write_file', arguments: { path: 'task.md', content: '- [x] collect\n- [ ] publish\n' } },
          { name: 'write_artifact', arguments: { id: 'numbers', content: 'a,b\n1,2\n', type: 'text/csv' } },
        ],
      };
    }
    const deltas = {
      artifact_deltas: [
        { id: 'report', title: 'The report', type: 'text/markdown', content: '# All is well' },
      ],
    };
    return `The report is written.\n\n\`\`\`artifact_deltas\n${JSON.stringify(deltas)}\n\`\`\``;
  });
  const first = await on.start();
  const api = `${await first.url()}/api`;
  const put = await fetch(`${api}/workspace/plan`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ content: '- [ ] collect\n- [ ] publish\n' }),
  });
  expect(put.status).toBeLessThan(300);
  const given = await fetch(`${api}/tasks`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      goal: 'Write the report',
      messages: [{ role: 'user', content: 'It is for Monday.' }],
      plan: { goal: 'A report', steps: [{ id: 's1', title: 'collect the numbers', status: 'pending' }] },
      artifacts: [
        { id: 'draft', title: 'A first draft', type: 'text/markdown', ref: 'https://example.org/draft' },
      ],
      memory: 'Numbers come from the office.',
    }),
  });
  expect(given.status).toBe(202);
  const { id } = (await given.json()) as { id: string };
  let task: Record<string, unknown> = {};
  await eventually(async () => {
    task = (await (await fetch(`${api}/tasks/${id}`)).json()) as Record<string, unknown>;
    return task.status === 'completed';
  }, 'the task is done');
  const asked = systemOf(bodies[0]);
  expect(asked).toContain('# Plan');
  expect(asked).toContain('collect the numbers');
  expect(JSON.stringify(bodies[0]?.messages)).toContain('A first draft');
  expect(JSON.stringify(bodies[0]?.messages)).toContain('Numbers come from the office.');
  const result = task.result as {
    text: string;
    summary: string;
    artifactRefs: { id: string; ref: string }[];
  };
  expect(result.text).toBe('The report is written.');
  expect(result.artifactRefs.map((each) => each.id).sort()).toEqual(['numbers', 'report']);
  expect(JSON.stringify(task)).not.toContain('All is well');
  expect(await on.home.read(`data/artifacts/${id}/report.md`)).toBe('# All is well');
  const served = await fetch(`${api}/artifacts/${id}/report`);
  expect(await served.text()).toBe('# All is well');
  expect(served.headers.get('x-content-type-options')).toBe('nosniff');
  await first.stop();

  const second = await on.start();
  on.telegram.say({ text: 'how is it going?' });
  await on.replies(ANNA.id, 1);
  expect(systemOf(bodies.at(-1))).toContain('# Plan');
  expect(systemOf(bodies.at(-1))).toContain('- [x] collect');
  on.telegram.say({ from: BOB, text: 'and for me?' });
  await on.replies(BOB.id, 1);
  expect(systemOf(bodies.at(-1))).not.toContain('# Plan');
  await second.stop();
});
