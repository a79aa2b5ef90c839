/** `/greeting`: which greetings there are, and another in place of the shown one. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type Workbench, workbench } from '../harness/conversation.js';

let on: Workbench;
const PERSONA = `---
name: Luna
greeting: Good evening, {{user}}.
greetings: ["Come in.", "You again?"]
group_greetings: ["Welcome, all of you."]
---

Luna keeps a shop.
`;
beforeEach(async () => {
  on = await workbench();
  for (const chat of ['test_1', 'test_-5']) {
    await mkdir(join(on.folder, 'groups', chat, 'luna'), { recursive: true });
    await writeFile(join(on.folder, 'groups', chat, 'luna/PERSONA.md'), PERSONA);
  }
});
afterEach(() => on.close());

async function said(...given: Parameters<Workbench['say']>): Promise<string[]> {
  const before = on.texts().length;
  await on.say(...given);
  await on.settled();
  return on.texts().slice(before);
}

it('are listed by number, and one replaces the shown one while nobody has spoken', async () => {
  expect(await said('/greeting')).toEqual([expect.stringContaining('has no greeting')]);
  expect((await said('/persona switch luna')).at(-1)).toMatch(/Good evening, Mira\.$/);
  const [list = ''] = await said('/greeting');
  expect(list).toContain('1. Good evening, Mira.');
  expect(list).toContain('3. You again?\n4. Welcome, all of you.');
  await said('/greeting 2');
  await said('hello');
  const history = JSON.stringify(on.asked.at(-1)?.messages);
  expect(history).toContain('Come in.');
  expect(history).not.toContain('Good evening');
  expect(await said('/greeting 3')).toEqual([expect.stringContaining('You again?')]);
  expect(await said('/greeting 9')).toEqual([expect.stringContaining('from 1 to 4')]);
});

it('of a group are those for groups', async () => {
  const group = { chat: { address: '-5', kind: 'group' as const, title: 'Garden' }, mentionsBot: true };
  const MIRA = { address: '2', name: 'Mira', administrator: true };
  const all = await said('/persona switch luna', { ...group, sender: MIRA });
  expect(all.at(-1)).toContain('Welcome, all of you.');
});

it('one is said as a new message once somebody has spoken, though not to the persona', async () => {
  const group = { chat: { address: '-5', kind: 'group' as const, title: 'Garden' } };
  const MIRA = { address: '2', name: 'Mira', administrator: true };
  await said('/persona switch luna', { ...group, sender: MIRA, mentionsBot: true });
  await on.say('lovely weather', { ...group, mentionsBot: false });
  await on.settled();
  const more = await said('/greeting 2', { ...group, sender: MIRA, mentionsBot: true });
  expect(more).toEqual([expect.stringContaining('Come in.')]);
  expect(on.texts().join('\n')).toContain('Welcome, all of you.');
});

it('however long one is, all of it is shown', async () => {
  const lines = Array.from({ length: 20_000 }, (_, n) => `line${n}`);
  await writeFile(
    join(on.folder, 'groups/test_1/luna/PERSONA.md'),
    `---\nname: Luna\ngreeting: ${lines.join(' ')}\n---\n`,
  );
  const [, ...parts] = await said('/persona switch luna');
  expect(parts.join(' ').match(/line\d+/g)).toEqual(lines);
});
