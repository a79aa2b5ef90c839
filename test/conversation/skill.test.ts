/** `/skill NAME …`: a person has a skill loaded, and the persona follows it for what they say. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Skills } from '../../src/core/skills.js';
import type { AnyTool } from '../../src/core/tool.js';
import { createSkills } from '../../src/skills/skills.js';
import { activateSkill } from '../../src/tools/activate-skill.js';
import { type Workbench, workbench } from '../harness/conversation.js';
import { quietLog } from '../harness/quiet.js';

let on: Workbench;
let skills: Skills;
beforeEach(async () => {
  const folder = () => join(on.folder, 'data/skills');
  const there = () =>
    createSkills({
      ...{ folder: folder(), platform: 'linux', has: () => true, isSet: () => true, log: quietLog },
    });
  const late = { load: (name, ask) => there().load(name, ask) } as Skills;
  on = await workbench({ tools: [activateSkill(late) as AnyTool] });
  skills = there();
  await put('trip-plan', 'description: Plans trips', 'Ask for the budget first. See {baseDir}/a.md');
  await put('My Notes', 'description: Notes', 'Write them in verse.');
  await put('deploy', 'description: Deploys\ndisable-model-invocation: true', 'Ask twice.');
  await put('rules', 'description: Rules\nuser-invocable: false', 'Be kind.');
  on.answer(() => 'As you wish.');
});
afterEach(() => on.close());

async function put(name: string, matter: string, body: string) {
  await mkdir(join(on.folder, 'data/skills', name), { recursive: true });
  await writeFile(join(on.folder, 'data/skills', name, 'SKILL.md'), `---\n${matter}\n---\n${body}\n`);
}
async function said(text: string, more: object = {}) {
  const before = on.asked.length;
  await on.say(text, more);
  await on.settled();
  return { asked: on.asked.slice(before), told: on.texts().at(-1) };
}
const lastOf = ({ asked }: Awaited<ReturnType<typeof said>>) => asked[0]?.messages.at(-1)?.content ?? '';

it('puts the instructions before the words, which stand in the conversation as they were said', async () => {
  const first = await said('/skill trip-plan a weekend in Vienna');
  expect(first.told).toBe('As you wish.');
  expect(lastOf(first)).toMatch(
    /Instructions of a skill[^\n]*\n```text\n# Skill: trip-plan\n\nIt lies in skills\/trip-plan\.\n\nAsk for the budget first\. See skills\/trip-plan\/a\.md\n```\n/,
  );
  expect(lastOf(first)).toContain('/skill trip-plan a weekend in Vienna</user_message>');
  const next = await said('and then?');
  expect(JSON.stringify(next.asked)).not.toContain('Ask for the budget first');
  expect(JSON.stringify(next.asked)).toContain('/skill trip-plan a weekend in Vienna');
});

it.each([
  ['/skill My Notes of today', 'verse'],
  ['/skill my notes', 'verse'],
  ['/skill "My Notes" of today', 'verse'],
  ['/SKILL Trip-Plan', 'budget'],
  ['\u200e／skill\ntrip-plan', 'budget'],
  ['/skill deploy now', 'Ask twice'],
])('takes %j', async (text, held) => {
  expect(lastOf(await said(text))).toContain(held);
});

it.each([
  ['/skill', /^Please name a skill: .* There are: My Notes, deploy, trip-plan\.$/],
  ['/skill nothing at all', /^There is no such skill: /],
  ['/skill trip-planner', /^There is no such skill: /],
  ['/skill rules', /not for people/],
])('says a sentence to %j, and asks no model', async (text, told) => {
  const answer = await said(text);
  expect(answer.asked).toEqual([]);
  expect(answer.told).toMatch(told);
});

it('says so where the persona has no skills', async () => {
  await on.close();
  on = await workbench({});
  await put('trip-plan', 'description: Plans trips', 'x');
  expect((await said('/skill trip-plan go')).told).toMatch(/has no use of skills/);
  expect(on.asked).toEqual([]);
});

it('is nothing that a forward, a quote or a model can ask for', async () => {
  const forwarded = await said('/skill deploy now', { forwardedFrom: 'Bob' });
  expect(JSON.stringify(forwarded.asked)).not.toContain('Ask twice');
  const talked = await said('what does /skill deploy do?');
  expect(JSON.stringify(talked.asked)).not.toContain('Ask twice');
  expect(await skills.load('deploy', { by: 'models', paths: 'placed' })).toMatchObject({ ok: false });
});

it('is cut where no request could hold it, with a marker', async () => {
  await put('long', 'description: Long', 'x y '.repeat(50_000));
  const asked = lastOf(await said('/skill long please'));
  expect(asked).toContain('<<truncated due to skill-max-chars=');
  expect(asked).toContain('/skill long please</user_message>');
});

it('is said to a group without a mention, too', async () => {
  const chat = { address: '-5', kind: 'group' as const, title: 'Group' };
  expect(lastOf(await said('/skill trip-plan go', { chat }))).toContain('budget');
});

it('leaves a turn untainted that reads what a skill holds, by a tool that mostly reads words from outside', async () => {
  await on.close();
  const read = (inside: boolean): AnyTool => ({
    ...{ name: inside ? 'read_skill' : 'read_other', description: 'x', risk: 'low', isFromOutside: true },
    parameters: { type: 'object' },
    execute: async () => ({ content: 'read', failed: false, ...(inside && { inside: true }) }),
  });
  on = await workbench({ tools: [read(true), read(false)] });
  for (const name of ['read_skill', 'read_other']) {
    let calls = 0;
    on.answer(() => (calls++ === 0 ? { calls: [{ name, arguments: {} }] } : 'done'));
    const { asked } = await said('go');
    expect([name, JSON.stringify(asked.at(-1)?.messages.at(-1)).includes('untrusted')]).toEqual([
      ...[name, name === 'read_other'],
    ]);
    await on.say('/reset');
    await on.settled();
  }
});
