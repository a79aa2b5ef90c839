/** `/skills`: what people see of the skills, and what owners see besides. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Tool } from '../../src/core/tool.js';
import { createSkills } from '../../src/skills/skills.js';
import { activateSkill } from '../../src/tools/activate-skill.js';
import { type Workbench, workbench } from '../harness/conversation.js';
import { quietLog } from '../harness/quiet.js';

let on: Workbench;
beforeEach(async () => {
  on = await workbench({ rules: { owners: ['test_2'] } });
});
afterEach(() => on.close());

const OWNER = { sender: { address: '2', name: 'Olga', administrator: false } };
async function put(name: string, text: string) {
  const folder = join(on.folder, 'data/skills', name);
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'SKILL.md'), text);
}
async function skills(more: object = {}) {
  await on.say('/skills', more);
  await on.settled();
  return on.texts().at(-1);
}

it('is one sentence where there are none', async () => {
  expect(await skills()).toBe('No skills are installed.');
  expect(await skills(OWNER)).toBe('No skills are installed.');
  expect(on.asked).toEqual([]);
});

it('lists them as they are now; only owners see what was skipped, and why', async () => {
  await put('pdf', '---\nname: pdf\ndescription: Reads `PDF`\n---\n');
  await put('broken', 'x');
  expect(await skills()).toBe('Skills:\n- `pdf`: Reads `PDF`');
  expect(await skills(OWNER)).toBe(
    'Skills:\n- `pdf`: Reads `PDF`\n\nThe persona here can’t use them: `skills` is not among its tools (`tools.allow`).' +
      '\n\nNot offered:\n- `broken`: it has no front matter between two lines of ---',
  );
});

it('is no message of megabytes', async () => {
  for (let n = 0; n < 60; n++)
    await put(`s${n}`, `---\nname: s${n}\ndescription: ${'x'.repeat(1_000)}\n---\n`);
  const text = (await skills()) ?? '';
  expect(text.length).toBeLessThan(11_500);
  expect(text).toMatch(/\n- … and 10 more$/);
});

it('says nothing of tools where the persona can load them', async () => {
  await on.close();
  const none = createSkills({
    folder: '/nowhere',
    platform: 'linux',
    has: () => true,
    isSet: () => true,
    log: quietLog,
  });
  on = await workbench({ rules: { owners: ['test_2'] }, tools: [activateSkill(none) as Tool<never>] });
  await put('pdf', '---\nname: pdf\ndescription: PDFs\n---\n');
  expect(await skills(OWNER)).toBe('Skills:\n- `pdf`: PDFs');
});
