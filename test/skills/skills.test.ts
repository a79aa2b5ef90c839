/** The folder of skills: what is offered, what is skipped and why, and that an operator's edit is seen at once. */
import { chmod, mkdir, mkdtemp, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Skills } from '../../src/core/skills.js';
import { createSkills, type SkillHost, systemHost } from '../../src/skills/skills.js';
import { quietLog } from '../harness/quiet.js';

let home: string;
let folder: string;
let logged: unknown[];
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'coterie-skills-'));
  folder = join(home, 'skills');
  logged = [];
  await mkdir(folder);
});
afterEach(() => rm(home, { recursive: true, force: true }));

const HOST: SkillHost = {
  platform: 'linux',
  has: (program) => program === 'git',
  isSet: (variable) => variable === 'A_KEY',
};
const skillsOn = (host: SkillHost = HOST, at = folder): Skills =>
  createSkills({
    folder: at,
    ...host,
    log: { ...quietLog, warn: (fields: object) => void logged.push(fields) },
  });
const text = (name: string, more = '', body = `How to ${name}.`) =>
  `---\nname: ${name}\ndescription: About ${name}.\n${more}---\n${body}\n`;
async function put(name: string, content: string, file = 'SKILL.md') {
  await mkdir(join(folder, name), { recursive: true });
  await writeFile(join(folder, name, file), content);
}
const why = async (name: string, skills = skillsOn()) =>
  (await skills.list()).problems.find((each) => each.name === name)?.why;

it('are those whose conditions hold, by name; a broken one stops nothing', async () => {
  await put('zebra', text('zebra'));
  await put('ant', text('ant'));
  await put('lower', text('lower'), 'skill.md');
  await put('broken', '# no front matter');
  await put('mac', text('mac', 'platforms: [macos]\n'));
  await put('tool', text('tool', 'deps: [git, rg, jq]\n'));
  await put('any', text('any', 'metadata: {"openclaw":{"requires":{"anyBins":["x","y"]}}}\n'));
  await put('key', text('key', 'metadata: {"clawdbot":{"requires":{"env":["A_KEY"]}}}\n'));
  await put('nokey', text('nokey', 'metadata: {"clawdbot":{"requires":{"env":["A_KEY","B_KEY"]}}}\n'));
  await put('empty', '', 'README.md');
  await put('.git', text('git'));
  await writeFile(join(folder, 'README.md'), text('readme'));
  const { skills, problems } = await skillsOn().list();
  expect(skills).toEqual(
    ['ant', 'key', 'lower', 'zebra'].map((name) => ({
      name,
      description: `About ${name}.`,
      folder: join(folder, name),
      place: name,
      loadedBy: 'anybody',
    })),
  );
  expect(problems).toEqual([
    { name: 'any', why: 'it needs one of x, y, and none is installed here' },
    { name: 'broken', why: 'it has no front matter between two lines of ---' },
    { name: 'empty', why: 'it has no SKILL.md' },
    { name: 'mac', why: 'it is for darwin, and this is linux' },
    { name: 'nokey', why: 'it needs B_KEY in the environment, which is not set' },
    { name: 'tool', why: 'it needs rg, jq, which is not installed here' },
  ]);
});

it('are none where there is no folder, or a file in its place', async () => {
  expect(await skillsOn(HOST, join(home, 'nowhere')).list()).toEqual({
    skills: [],
    problems: [],
    remarks: [],
  });
  await writeFile(join(home, 'file'), '');
  const { skills, problems } = await skillsOn(HOST, join(home, 'file')).list();
  expect(skills).toEqual([]);
  expect(problems).toMatchObject([{ name: 'skills', why: expect.stringContaining('ENOTDIR') }]);
});

it('follow every edit, also within one tick and with an old date', async () => {
  const skills = skillsOn();
  await put('a', text('a'));
  const old = new Date(Date.now() - 60_000);
  for (const description of ['one', 'two', 'six']) {
    await put('a', `---\nname: a\ndescription: ${description}\n---\n`);
    await utimes(join(folder, 'a/SKILL.md'), old, old);
    expect((await skills.list()).skills).toMatchObject([{ description }]);
  }
  await rm(join(folder, 'a'), { recursive: true });
  expect((await skills.list()).skills).toEqual([]);
});

it('say what is wrong once, and again when it is something else', async () => {
  const skills = skillsOn();
  await put('a', 'broken');
  for (let n = 0; n < 3; n++) await skills.list();
  await skills.load('a', { by: 'models', paths: 'placed' });
  expect(logged).toHaveLength(1);
  await put('a', '---\nname: a\n---\n');
  for (let n = 0; n < 3; n++) await skills.list();
  expect(logged).toHaveLength(2);
});

describe('are refused', () => {
  it('where a link in one leads out of it, to nowhere, or to the folder of skills', async () => {
    await mkdir(join(home, 'outside'));
    await writeFile(join(home, 'outside/SKILL.md'), text('outside'));
    await put('file', 'x', 'other.md');
    await symlink(join(home, 'outside/SKILL.md'), join(folder, 'file/SKILL.md'));
    await mkdir(join(folder, 'group'));
    await symlink(join(home, 'outside'), join(folder, 'group/out'));
    await symlink('missing', join(folder, 'nowhere'));
    await symlink('loop', join(folder, 'loop'));
    await symlink('.', join(folder, 'self'));
    await symlink(home, join(folder, 'above'));
    await put('inner', text('inner'));
    const { skills } = await skillsOn().list();
    expect(skills.map(({ name }) => name)).toEqual(['inner']);
    for (const name of ['file', 'group/out']) expect(await why(name)).toBe(OUT);
    for (const name of ['nowhere', 'loop']) expect(await why(name)).toBe('it is a link that leads nowhere');
    for (const name of ['self', 'above']) {
      expect(await why(name)).toBe('it is a link to the folder of skills itself');
    }
  });

  it('when they are too large, no file, or one name too many', async () => {
    await put('large', text('large', '', 'x'.repeat(256_000)));
    await mkdir(join(folder, 'dir/SKILL.md'), { recursive: true });
    await put('a', text('same'));
    await put('b', text('same'));
    await put('Same', text('same'));
    const { skills, problems } = await skillsOn().list();
    expect(skills).toMatchObject([{ name: 'same', folder: join(folder, 'Same') }]);
    expect(problems).toEqual([
      { name: 'a', why: 'another skill is called same, too' },
      { name: 'b', why: 'another skill is called same, too' },
      { name: 'dir', why: 'its SKILL.md is no file' },
      { name: 'large', why: 'its SKILL.md has more than 256 kB' },
    ]);
  });

  it('from the 501st folder on', async () => {
    for (let n = 0; n < 502; n++) await mkdir(join(folder, `x${n}`));
    expect((await skillsOn().list()).problems.at(-1)).toEqual({
      ...{ name: 'skills', why: 'there are more than 500 folders; those after them are not looked at' },
    });
  });
});

const OUT = 'it is a link that leads out of the folder of skills';

it('are taken from groups, and by links that an operator made; each once', async () => {
  await put('office/pdf', text('pdf'));
  await put('office/My Notes', text('My Notes'));
  await put('office/shared', 'x', 'README.md');
  await put('plain', text('plain'));
  await put('plain/inner', text('inner'));
  await symlink('office/pdf', join(folder, 'pdf'));
  for (const name of ['one', 'two']) {
    await mkdir(join(home, 'home/.agents/skills', name), { recursive: true });
    await writeFile(join(home, 'home/.agents/skills', name, 'SKILL.md'), text(name));
  }
  await symlink(join(home, 'home/.agents/skills'), join(folder, 'agents'));
  await symlink('../home/.agents/skills/one', join(folder, 'one-again'));
  await symlink('../../..', join(home, 'home/.agents/skills/out'));
  const { skills, problems } = await skillsOn().list();
  expect(skills.map(({ name, place, folder }) => [name, place, folder.slice(home.length + 1)])).toEqual([
    ['My Notes', 'office/My Notes', 'skills/office/My Notes'],
    ['one', 'agents/one', 'home/.agents/skills/one'],
    ['pdf', 'office/pdf', 'skills/office/pdf'],
    ['plain', 'plain', 'skills/plain'],
    ['two', 'agents/two', 'home/.agents/skills/two'],
  ]);
  expect(problems).toEqual([{ name: 'agents/out', why: OUT }]);
});

it('are taken from a group of links to the folder in which programs keep them', async () => {
  const kept = join(home, 'home/.agents/skills');
  for (const name of ['one', 'two']) {
    await mkdir(join(kept, name), { recursive: true });
    await writeFile(join(kept, name, 'SKILL.md'), text(name));
  }
  await mkdir(join(home, 'home/.claude/skills'), { recursive: true });
  await symlink('../../.agents/skills/one', join(home, 'home/.claude/skills/one'));
  await symlink(join(home, 'home/.claude/skills'), join(folder, 'claude'));
  await mkdir(join(folder, 'mine'));
  await symlink(join(kept, 'two'), join(folder, 'mine/two'));
  // Not a skill itself, and a file that is not its own.
  await symlink(kept, join(folder, 'mine/all'));
  await mkdir(join(kept, 'three'));
  await writeFile(join(home, 'secret.md'), text('three'));
  await symlink(join(home, 'secret.md'), join(kept, 'three/SKILL.md'));
  await symlink(join(kept, 'three'), join(folder, 'mine/three'));
  const { skills, problems } = await skillsOn().list();
  expect(skills.map(({ name, place }) => [name, place])).toEqual([
    ['one', 'claude/one'],
    ['two', 'mine/two'],
  ]);
  expect(problems).toEqual(['all', 'three'].map((name) => ({ name: `mine/${name}`, why: OUT })));
});

it('without a name are called as their folder, or a link to it, is called here', async () => {
  await mkdir(join(home, 'outside'));
  await writeFile(join(home, 'outside/SKILL.md'), '---\ndescription: About it.\n---\n');
  await symlink(join(home, 'outside'), join(folder, 'linked'));
  expect((await skillsOn().list()).skills).toMatchObject([{ name: 'linked', place: 'linked' }]);
});

it('are loaded by whom their file says', async () => {
  await put('deploy', text('deploy', 'disable-model-invocation: true\n'));
  await put('rules', text('rules', 'user-invocable: false\n'));
  const skills = skillsOn();
  expect(await skills.load('deploy', { by: 'people', paths: 'placed' })).toMatchObject({ ok: true });
  expect(await skills.load('rules', { by: 'models', paths: 'placed' })).toMatchObject({ ok: true });
  expect(await skills.load('deploy', { by: 'models', paths: 'placed' })).toMatchObject({
    ...{ ok: false, reason: expect.stringContaining('only by people') },
  });
  expect(await skills.load('rules', { by: 'people', paths: 'placed' })).toMatchObject({ ok: false });
  expect(await skills.load('x', { by: 'models', paths: 'placed' })).toMatchObject({
    reason: expect.stringMatching(/are: rules\.$/),
  });
});

it('say what a prompt cannot hold of them, and what was cut', async () => {
  const long = 'x'.repeat(1_100);
  for (let n = 10; n < 40; n++) await put(`s${n}`, `---\nname: s${n}\ndescription: ${long}\n---\n`);
  const { skills, problems, remarks } = await skillsOn().list();
  expect([skills.length, problems]).toEqual([30, []]);
  expect(remarks).toHaveLength(31);
  expect(remarks.at(-1)).toEqual({
    name: 'skills',
    why: 's31 and 8 after it are not named in prompts, which show 24000 characters of names and descriptions',
  });
  expect(logged).toHaveLength(31);
});

it('are loaded by name; where there is no such skill, those that exist are named', async () => {
  await put('a', text('a'));
  await put('b', text('b'));
  await put('broken', 'x');
  const skills = skillsOn();
  expect(await skills.load('a', { by: 'models', paths: 'placed' })).toEqual({
    ...{
      ok: true,
      skill: {
        ...{ name: 'a', description: 'About a.', folder: join(folder, 'a'), place: 'a' },
        loadedBy: 'anybody',
      },
      text: '# Skill: a\n\nIt lies in skills/a.\n\nHow to a.',
    },
  });
  for (const name of ['broken', '../a', 'A', '', 'constructor']) {
    expect(await skills.load(name, { by: 'people', paths: 'placed' })).toEqual({
      ...{ ok: false, reason: `There is no skill called ${JSON.stringify(name)}. There are: a, b.` },
    });
  }
});

it('a program is one that can be run, in a folder of PATH', async () => {
  const bin = join(home, 'bin');
  await mkdir(join(bin, 'folder'), { recursive: true });
  for (const name of ['runs', 'plain']) await writeFile(join(bin, name), '');
  await chmod(join(bin, 'runs'), 0o755);
  const { has, isSet } = systemHost({ PATH: `/nowhere:${bin}:relative`, EMPTY: '', FULL: 'x' }, 'linux');
  expect(['runs', 'plain', 'folder', 'missing'].map(has)).toEqual([true, false, false, false]);
  expect(['FULL', 'EMPTY', 'MISSING'].map(isSet)).toEqual([true, false, false]);
});
