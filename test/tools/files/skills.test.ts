/**
 * Files of skills, for file tools, for whoever has none but `read_file` of skills, and for commands: at `skills/…`, before
 * anything was run, to be read and not changed; and nothing beside a skill is reached through one.
 */
import { randomUUID } from 'node:crypto';
import { lstat, mkdir, readdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AgentPlace, Authorisation } from '../../../src/core/authorisation.js';
import { systemClock } from '../../../src/core/clock.js';
import { createSlots } from '../../../src/core/concurrency.js';
import type { Tool } from '../../../src/core/tool.js';
import { createSkills } from '../../../src/skills/skills.js';
import { activateSkill } from '../../../src/tools/activate-skill.js';
import { glob, grep } from '../../../src/tools/files/find.js';
import { editFile, readFile, readSkillFile, writeFile } from '../../../src/tools/files/read-write.js';
import { shell } from '../../../src/tools/shell/shell.js';
import { askerWho } from '../../harness/asker.js';
import { describeWithBubblewrap } from '../../harness/bubblewrap.js';
import { quietLog } from '../../harness/quiet.js';
import { CALLER, compileSearch, HERE, makeHome, WORK } from './support.js';

let search: Awaited<ReturnType<typeof compileSearch>>;
beforeAll(async () => {
  search = await compileSearch();
});
afterAll(() => search.remove());

const KINDS = ['persona', 'workspace', 'agent'] as const;
type Kind = (typeof KINDS)[number];
const text = (name: string) => `---\nname: ${name}\ndescription: x\n---\nRun {baseDir}/run.sh\n`;

async function setUp(kind: Kind = 'persona', sandbox: 'bubblewrap' | 'none' = 'none') {
  const home = await makeHome();
  const at = (path: string) => join(home.home, path);
  await home.put('data/skills/weather/SKILL.md', text('weather'));
  await home.put('data/skills/weather/references/a.md', 'clouds');
  await home.put('data/skills/weather/run.sh', 'echo it rains\n');
  await home.put('data/skills/office/pdf/SKILL.md', text('portable'));
  await home.put('data/skills/office/pdf/b.md', 'pages');
  await home.put('data/skills/office/secret.md', 'SECRET');
  await home.put('outside/tea/SKILL.md', text('tea'));
  await home.put('outside/tea/c.md', 'leaves');
  await home.put('outside/secret.md', 'SECRET');
  await symlink('../../outside/tea', at('data/skills/tea'));
  await symlink('../secret.md', at('outside/tea/out.md'));
  await symlink('../office/secret.md', at('data/skills/weather/out.md'));
  const skills = createSkills({
    ...{ folder: at('data/skills'), platform: 'linux', has: () => true, isSet: () => true, log: quietLog },
  });
  const folders = { ...home.folders, skills };
  const agent: AgentPlace = {
    ...{ id: 'utility', taskId: 't1', cwd: at('data/workspace'), roots: [at('data/workspace')] },
    ...{
      env: {},
      space: at('data/agents/utility/internal_space'),
      shared: { folder: at('data/agents/utility/internal_space'), mayWrite: true },
    },
  };
  if (kind === 'agent') await mkdir(at('data/workspace'), { recursive: true });
  const authorisation: Authorisation = {
    ...CALLER,
    ...(kind === 'workspace' && { controlChats: [HERE], asker: askerWho({ own: true }) }),
    ...(kind === 'agent' && { agent }),
  };
  const find = { folders, clock: systemClock, slots: createSlots(2), worker: search.entry };
  const ask =
    <P>(tool: Tool<P>) =>
    (given: object, changes: Partial<Authorisation>) =>
      home.call(tool, given, { authorisation: { ...authorisation, ...changes } });
  const tools = {
    read: ask(readFile(folders)),
    readSkill: ask(readSkillFile(folders)),
    write: ask(writeFile(folders)),
    edit: ask(editFile(folders)),
    glob: ask(glob(find)),
    grep: ask(grep(find)),
    activate: ask(activateSkill(skills)),
    shell: ask(
      shell({
        ...{ folders, clock: systemClock, newId: randomUUID, environment: { PATH: process.env.PATH } },
        settings: { sandbox, network: false, env: [], timeoutSeconds: 20, memoryMb: 512 },
      }),
    ),
  };
  const call = (tool: keyof typeof tools, given: object, changes: Partial<Authorisation> = {}) =>
    tools[tool](given, changes);
  return { ...home, at, call };
}

describe.each(KINDS)('of a %s', (kind) => {
  test('are read at skills/, by their folder and by their name, and are no words from outside', async () => {
    const { call } = await setUp(kind);
    for (const [path, held] of [
      ['skills/weather/references/a.md', 'clouds'],
      ['./skills/office/pdf/b.md', 'pages'],
      ['skills/portable/b.md', 'pages'],
      ['skills/tea/c.md', 'leaves'],
    ]) {
      const { content, failed, inside } = await call('read', { path });
      expect([content, failed, inside]).toEqual([expect.stringContaining(held ?? ''), false, true]);
    }
  });

  test('are found by glob and grep', async () => {
    const { call, at } = await setUp(kind);
    const shown = (path: string) =>
      kind !== 'agent'
        ? `skills/${path}`
        : at(path.startsWith('tea/') ? `outside/${path}` : `data/skills/${path}`);
    const found = ['weather/references/a.md', 'office/pdf/b.md', 'tea/c.md'].map(shown);
    const lines = (content: string) => content.split('\n').filter((line) => !line.includes('SKILL.md'));
    for (const given of [{ pattern: '**/*.md', path: 'skills' }, { pattern: 'skills/**/*.md' }]) {
      expect(lines((await call('glob', given)).content).sort()).toEqual(found.sort());
    }
    expect((await call('glob', { pattern: '*.md', path: 'skills/portable' })).content).toContain('b.md');
    const grepped = await call('grep', { pattern: 'clouds|SECRET', path: 'skills' });
    expect(grepped.content).toBe(`${shown('weather/references/a.md')}:1: clouds`);
  });

  test('are not written, and no link in one leads out of it', async () => {
    const { call } = await setUp(kind);
    const refused = [
      await call('write', { path: 'skills/weather/new.md', content: 'x' }),
      await call('edit', { path: 'skills/weather/run.sh', old_string: 'rains', new_string: 'snows' }),
      await call('read', { path: 'skills/tea/out.md' }),
      await call('read', { path: 'skills/weather/../../coterie.db' }),
    ];
    for (const { failed, content } of refused)
      expect([failed, content.includes('SECRET')]).toEqual([true, false]);
    // The workspace and agents see the whole folder of skills.
    if (kind !== 'persona') return;
    for (const path of ['skills/weather/out.md', 'skills/office/secret.md', 'skills/nothing/a.md']) {
      expect((await call('read', { path })).failed).toBe(true);
    }
  });
});

test('whoever has no files reads those of skills, and nothing else', async () => {
  const { call, put, at } = await setUp();
  await put(`${WORK}/own.md`, 'SECRET');
  expect(await call('readSkill', { path: 'skills/weather/references/a.md' })).toMatchObject({
    ...{ failed: false, content: expect.stringContaining('clouds') },
  });
  for (const path of [
    'own.md',
    at(`${WORK}/own.md`),
    'skills/../x',
    'skills',
    '',
    'media/a.txt',
    '/etc/passwd',
  ]) {
    const { failed, content } = await call('readSkill', { path });
    expect([failed, content]).toEqual([true, expect.stringMatching(/skills\//)]);
  }
});

test('a turn without skills sees none, and has a folder of that name like any other', async () => {
  const home = await makeHome();
  await home.put('data/skills/weather/SKILL.md', text('weather'));
  await home.put(`${WORK}/skills/weather/SKILL.md`, 'my own');
  const read = readFile(home.folders);
  expect((await home.call(read, { path: 'skills/weather/SKILL.md' })).content).toContain('my own');
});

test('a file of that name stays what it is, and keeps no command from running', async () => {
  const { call, put } = await setUp('persona', 'bubblewrap');
  await put(`${WORK}/skills`, 'a file');
  expect((await call('read', { path: 'skills' })).content).toContain('a file');
  const { content } = await call('shell', { command: 'cat skills' });
  expect(content).not.toContain('is in the way');
});

test('a project with a folder of that name keeps it', async () => {
  const { call, put, at } = await setUp('agent');
  await put('project/skills/weather/a.md', 'of the project');
  const agent: AgentPlace = {
    ...{ id: 'utility', taskId: 't1', cwd: at('project'), roots: [at('project')], env: {} },
    space: at('data/agents/utility/internal_space'),
    shared: { folder: at('data/agents/utility/internal_space'), mayWrite: true },
  };
  expect((await call('read', { path: 'skills/weather/a.md' }, { agent })).content).toContain(
    'of the project',
  );
  const real = at('data/skills/weather/references/a.md');
  expect((await call('read', { path: real }, { agent })).content).toContain('clouds');
});

describe.each(KINDS)('the instructions, for a %s,', (kind) => {
  test('name paths that can be read and run', async () => {
    const { call, at } = await setUp(kind);
    const { content } = await call('activate', { name: 'weather' });
    const folder = kind === 'agent' ? at('data/skills/weather') : 'skills/weather';
    expect(content).toContain(`Run ${folder}/run.sh`);
    expect(content).toContain(`\n${folder}/references/a.md\n`);
    expect((await call('read', { path: `${folder}/references/a.md` })).content).toContain('clouds');
    expect((await call('shell', { command: `sh ${folder}/run.sh` })).content).toContain('it rains');
  });
});

describe.each(['bubblewrap', 'none'] as const)('with sandbox: %s', (sandbox) => {
  const described = sandbox === 'none' ? describe : describeWithBubblewrap;
  described.each(KINDS)('a command of a %s', (kind) => {
    test('runs the scripts of skills, also of linked ones and in the very first call', async () => {
      const { call } = await setUp(kind, sandbox);
      const { content, failed } = await call('shell', {
        command: 'sh skills/weather/run.sh; cat skills/office/pdf/b.md; echo; cat skills/tea/c.md',
      });
      expect([content, failed]).toEqual(['it rains\npages\nleaves\n[exit code 0]', false]);
      expect((await call('shell', { command: 'pwd', cwd: 'skills/weather' })).content).toContain('weather');
    });
  });
});

describeWithBubblewrap('in the sandbox', () => {
  test('skills cannot be changed, nor what lies beside them be seen', async () => {
    const { call, at } = await setUp('persona', 'bubblewrap');
    const { content } = await call('shell', {
      command:
        'touch skills/x skills/weather/x; mkdir skills/new; cat skills/weather/out.md skills/tea/out.md; ls skills',
    });
    expect(content).not.toContain('SECRET');
    expect(content).toMatch(/^office\nportable\ntea\nweather\n/);
    expect(await readdir(at(`${WORK}/skills`))).toEqual([]);
    expect(await readdir(at('data/skills/weather'))).not.toContain('x');
  });

  test('a link that a persona put there leads nowhere', async () => {
    const { call, at } = await setUp('persona', 'bubblewrap');
    await mkdir(at(WORK), { recursive: true });
    await symlink('/usr', at(`${WORK}/skills`));
    expect((await call('shell', { command: 'ls skills' })).content).toContain('weather');
    expect((await lstat(at(`${WORK}/skills`))).isDirectory()).toBe(true);
  });
});
