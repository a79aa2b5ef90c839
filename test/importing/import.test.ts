/** `coterie import`: what goes where, and that nothing is lost, changed or followed, whatever lies in the folder. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  realpath,
  rm,
  stat,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { locks } from '../../src/core/concurrency.js';
import { createZone } from '../../src/core/dates.js';
import { createArchives } from '../../src/groups/archives.js';
import { isChatId, isPersonaId, slug } from '../../src/groups/paths.js';
import { createPersonas } from '../../src/groups/personas.js';
import { importFrom } from '../../src/importing/import.js';

const none = () => {};
const LOG = { debug: none, info: none, warn: none, error: none };

async function setUp(files: Record<string, string> = {}) {
  const home = await realpath(await mkdtemp(join(tmpdir(), 'coterie-import-')));
  onTestFinished(() => rm(home, { recursive: true, force: true }));
  const put = async (file: string, content: string) => {
    await mkdir(dirname(join(home, file)), { recursive: true });
    await writeFile(join(home, file), content);
  };
  for (const [file, content] of Object.entries(files)) await put(file, content);
  await mkdir(join(home, 'from'), { recursive: true });
  const order = {
    folder: join(home, 'from'),
    groups: join(home, 'groups'),
    workspace: join(home, 'data/workspace'),
    skills: join(home, 'data/skills'),
    names: { isChatId, isPersonaId, idOf: slug, channels: ['telegram', 'discord', 'whatsapp'] },
  };
  return {
    ...{ home, put, order },
    /** Fails where anything of the folder that is brought in has changed. */
    async run(more: Partial<typeof order> & { isDryRun?: boolean } = {}) {
      const before = await everythingIn(join(home, 'from'));
      const imported = await importFrom({ ...order, ...more });
      expect(await everythingIn(join(home, 'from'))).toEqual(before);
      return imported;
    },
    text: (file: string) => readFile(join(home, file), 'utf8'),
    files: async () =>
      [...(await filesIn(join(home, 'data'))), ...(await filesIn(join(home, 'groups')))].map((file) =>
        file.slice(home.length + 1),
      ),
  };
}

async function filesIn(folder: string): Promise<string[]> {
  const all = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  return all
    .filter((each) => !each.isDirectory())
    .map((each) => join(each.parentPath, each.name))
    .sort();
}

async function everythingIn(folder: string): Promise<string[]> {
  const all = await readdir(folder, { recursive: true, withFileTypes: true });
  const lines = all.map(async (each) => {
    const path = join(each.parentPath, each.name);
    const { mode, mtimeMs, size, ino } = await lstat(path);
    const content = each.isSymbolicLink()
      ? await readlink(path)
      : each.isFile() && size < 1_000_000 && (mode & 0o400) !== 0
        ? createHash('sha256')
            .update(await readFile(path))
            .digest('hex')
        : '';
    return `${path} ${mode} ${mtimeMs} ${size} ${ino} ${content}`;
  });
  return (await Promise.all(lines)).sort();
}

test('names that a Mac wrote become those that people type, and what is there under either is not doubled', async () => {
  const decomposed = (name: string) => name.normalize('NFD');
  const { run, files, put } = await setUp({
    [decomposed('from/groups/4711/zoë/MEMORY.md')]: 'm',
    [decomposed('from/groups/4711/zoë/PERSONA.md')]: 'p',
    [decomposed('from/skills/Grüße/SKILL.md')]: 's',
  });
  await put(decomposed('data/skills/Grüße/SKILL.md'), 's');
  await run();
  expect(await files()).toEqual([
    decomposed('data/skills/Grüße/SKILL.md'),
    'groups/telegram_4711/zoë/MEMORY.md'.normalize('NFC'),
    'groups/telegram_4711/zoë/PERSONA.md'.normalize('NFC'),
  ]);
});

describe('an OpenClaw workspace', () => {
  const WORKSPACE = {
    'from/MEMORY.md': '# Memory',
    'from/memory/2026-02-10.md': 'a day',
    'from/memory/projects/verso.md': 'notes',
    'from/AGENTS.md': 'agents',
    'from/SOUL.md': 'soul',
    'from/USER.md': 'Julius',
    'from/TOOLS.md': 'tools',
    'from/IDENTITY.md': 'verso',
    'from/HEARTBEAT.md': 'beat',
    'from/skills/weather/SKILL.md': '---\nname: weather\n---\n',
    'from/skills/weather/scripts/now.sh': 'echo now',
    'from/node_modules/x/README.md': 'no',
    'from/NOTES.md': 'notes',
    'from/implementation_plan.md': 'plan',
    'from/notes/deep/x.md': 'x',
    'from/notes/picture.png': '\x89PNG\0',
    'from/.obsidian/app.json': '{}',
    'from/.env': 'KEY=1',
  };

  test('goes to the workspace and the skills, private and as it is', async () => {
    const { run, files, text, home } = await setUp(WORKSPACE);
    await chmod(join(home, 'from/skills/weather/scripts/now.sh'), 0o755);
    const { found, done, passedOver } = await run();
    expect(await files()).toEqual(
      [
        'data/skills/weather/SKILL.md',
        'data/skills/weather/scripts/now.sh',
        ...['AGENTS', 'HEARTBEAT', 'IDENTITY', 'MEMORY', 'SOUL', 'TOOLS', 'USER'].map(
          (name) => `data/workspace/${name}.md`,
        ),
        'data/workspace/memory/2026-02-10.md',
        'data/workspace/memory/projects/verso.md',
        'data/workspace/NOTES.md',
        'data/workspace/implementation_plan.md',
        'data/workspace/notes/deep/x.md',
        'groups/personas/imported.md',
      ].sort(),
    );
    expect(await text('data/workspace/USER.md')).toBe('Julius');
    expect(found).toEqual(['an OpenClaw workspace', 'skills (skills/)']);
    expect(done.every(({ kind }) => kind === 'new')).toBe(true);
    expect(Object.fromEntries(passedOver.map(({ path, why }) => [path, why]))).toEqual({
      node_modules: 'folders of that name are not brought in',
      'notes/picture.png': 'it is no text',
      '.obsidian': 'it is hidden',
      '.env': 'it is hidden',
    });
    expect((await stat(join(home, 'data/workspace/USER.md'))).mode & 0o777).toBe(0o600);
    expect((await stat(join(home, 'data/skills/weather/scripts/now.sh'))).mode & 0o777).toBe(0o700);
  });

  test('also in workspace/, as below ~/.openclaw, and with AGENTS.md alone', async () => {
    const { run, files } = await setUp({
      'from/workspace/MEMORY.md': 'm',
      'from/workspace/skills/a/SKILL.md': 'a',
      'from/skills/b/SKILL.md': 'b',
      'from/workspace/notes/x.md': 'x',
      'from/openclaw.json': '{}',
      'from/credentials/token.txt': 'SECRET',
      'from/memory/index.md': 'index',
    });
    await run();
    expect(await files()).toEqual([
      'data/skills/a/SKILL.md',
      'data/skills/b/SKILL.md',
      'data/workspace/MEMORY.md',
      'data/workspace/memory/index.md',
      'data/workspace/notes/x.md',
    ]);
    const other = await setUp({ 'from/AGENTS.md': 'x', 'from/src/main.c': 'code' });
    await other.run();
    expect(await other.files()).toEqual(['data/workspace/AGENTS.md']);
  });

  test('again and again: what is there is kept, and nothing new is lost or put there twice', async () => {
    const { run, put, files, text } = await setUp({
      'data/workspace/MEMORY.md': 'mine',
      'data/skills/weather/SKILL.md': 'my own',
      'from/MEMORY.md': 'one',
      'from/skills/weather/SKILL.md': 'theirs',
    });
    await run();
    await run();
    await put('from/MEMORY.md', 'two');
    await run();
    expect((await run()).done.map(({ kind }) => kind)).toEqual(['same', 'same']);
    expect(await files()).toEqual([
      'data/skills/weather/SKILL.imported.md',
      'data/skills/weather/SKILL.md',
      'data/workspace/MEMORY.imported-2.md',
      'data/workspace/MEMORY.imported.md',
      'data/workspace/MEMORY.md',
    ]);
    expect(await text('data/workspace/MEMORY.md')).toBe('mine');
    expect(await text('data/workspace/MEMORY.imported.md')).toBe('one');
    expect(await text('data/workspace/MEMORY.imported-2.md')).toBe('two');
    expect(await text('data/skills/weather/SKILL.md')).toBe('my own');
  });
});

describe('groups of MicroClaw', () => {
  test.each(['', 'runtime/'])('in %jgroups: chats, personas, days and conversations', async (base) => {
    const g = `from/${base}groups`;
    const { run, files, text, home } = await setUp({
      [`${g}/AGENTS.md`]: 'their principles',
      [`${g}/42/1/MEMORY.md`]: '# Memory\n\n## Tier 1\n- likes tea\n',
      [`${g}/42/memory/2026-02-10.md`]: 'a day',
      [`${g}/42/conversations/20260210-183000.md`]: '## user\n\nhello\n',
      [`${g}/-100123/1/MEMORY.md`]: 'one',
      [`${g}/-100123/2/MEMORY.md`]: 'two',
      [`${g}/7/3/MEMORY.md`]: 'three',
      [`${g}/discord_9/luna/MEMORY.md`]: 'luna',
      [`${g}/42/browser-profile/Cookies`]: 'no',
      [`${g}/..evil/1/MEMORY.md`]: 'no',
      [`${g}/42/UPPER/MEMORY.md`]: 'no',
      'groups/AGENTS.md': 'our principles',
    });
    const { passedOver } = await run();
    expect(await files()).toEqual(
      [
        'groups/AGENTS.imported.md',
        'groups/AGENTS.md',
        'groups/telegram_-100123/persona-1/MEMORY.md',
        'groups/telegram_-100123/persona-1/PERSONA.md',
        'groups/telegram_-100123/persona-2/MEMORY.md',
        'groups/telegram_-100123/persona-2/PERSONA.md',
        'groups/telegram_42/archive/2026-02-10T18-30-00-default.md',
        'groups/telegram_42/memory/2026-02-10.md',
        'groups/telegram_42/persona-1/MEMORY.md',
        'groups/telegram_42/persona-1/PERSONA.md',
        'groups/telegram_7/persona-3/MEMORY.md',
        'groups/telegram_7/persona-3/PERSONA.md',
        'groups/discord_9/luna/MEMORY.md',
        'groups/discord_9/luna/PERSONA.md',
      ].sort(),
    );
    expect(await text('groups/AGENTS.md')).toBe('our principles');
    expect(await text('groups/AGENTS.imported.md')).toBe('their principles');
    expect(passedOver.map(({ path }) => path.slice(`${base}groups/`.length)).sort()).toEqual([
      '..evil/1/MEMORY.md',
      '42/UPPER/MEMORY.md',
      '42/browser-profile/Cookies',
    ]);
    const personas = createPersonas({
      ...{ groupsDir: join(home, 'groups'), clock: systemClock, log: LOG, mostInChat: 50 },
    });
    expect((await personas.list('telegram_-100123')).map(({ id }) => id)).toEqual([
      'default',
      'persona-1',
      'persona-2',
    ]);
  });

  test('persona 1 is the default where it is the only one, and its conversations are archives', async () => {
    const { run, files, home } = await setUp({
      'from/groups/42/1/MEMORY.md': 'one',
      'from/groups/42/1/memory/2026-02-11.md': 'a day of its own',
      'from/groups/42/conversations/20260210-183000.md': '## user\n\nhello\n',
      'from/groups/43/MEMORY.md': 'of the chat',
    });
    await run();
    const archive = '2026-02-10T18-30-00-default.md';
    expect(await files()).toEqual([
      `groups/telegram_42/archive/${archive}`,
      'groups/telegram_42/default/MEMORY.md',
      'groups/telegram_42/memory/2026-02-11.md',
      'groups/telegram_43/default/MEMORY.md',
    ]);
    const archives = createArchives(join(home, 'groups'), createZone('UTC'), locks(), LOG);
    expect(await archives.list('telegram_42', 'default')).toEqual([
      expect.objectContaining({ file: archive, personaId: 'default', flushed: true, reset: false }),
    ]);
  });

  test('principles are never put in their place, also where there are none', async () => {
    const { run, files } = await setUp({ 'from/groups/AGENTS.md': 'theirs' });
    await run();
    expect(await files()).toEqual(['groups/AGENTS.imported.md']);
  });

  test('with skills, and source code beside them that has an AGENTS.md', async () => {
    const { run, files } = await setUp({
      'from/AGENTS.md': 'how to work on MicroClaw',
      'from/skills/a/SKILL.md': 'a',
      'from/runtime/groups/1/1/MEMORY.md': 'one',
    });
    await run();
    expect(await files()).toEqual(['data/skills/a/SKILL.md', 'groups/telegram_1/default/MEMORY.md']);
  });
});

describe('passed over, with a reason', () => {
  test('links, pipes, devices and what is too large; the rest is brought in', async () => {
    const { run, files, home, put } = await setUp({
      'secret.md': 'SECRET',
      'from/MEMORY.md': 'm',
      'from/memory/a.md': 'a',
      'from/skills/loose.md': 'x',
    });
    await put('outside/SKILL.md', 'SECRET');
    await symlink('../secret.md', join(home, 'from/USER.md'));
    await symlink('../../secret.md', join(home, 'from/memory/link.md'));
    await symlink(join(home, 'outside'), join(home, 'from/skills/evil'));
    await symlink('.', join(home, 'from/memory/again'));
    execFileSync('mkfifo', [join(home, 'from/SOUL.md')]);
    await truncate(join(home, 'from/memory/a.md'), 1_000_000_000);
    await mkdir(join(home, 'from/TOOLS.md'));
    const { passedOver } = await run();
    expect(await files()).toEqual(['data/workspace/MEMORY.md']);
    expect(Object.fromEntries(passedOver.map(({ path, why }) => [path, why]))).toEqual({
      'USER.md': 'it is a link, or no folder',
      'SOUL.md': 'it is no file',
      'TOOLS.md': 'it is no file',
      'memory/link.md': 'it is a link, or no file',
      'memory/again': 'it is a link, or no file',
      'memory/a.md': expect.stringContaining('too large: it has'.replace('it has', '')),
      'skills/evil': 'it is a link, or no file',
      'skills/loose.md': expect.stringContaining('no skill'),
    });
  });

  test('groups that are a link; a folder in whose place a file stands here', async () => {
    const { run, home, files } = await setUp({
      'from/MEMORY.md': 'm',
      'from/memory/a.md': 'a',
      'data/workspace/memory': 'a file',
      'elsewhere/1/1/MEMORY.md': 'SECRET',
    });
    await symlink('../elsewhere', join(home, 'from/groups'));
    const { passedOver, done } = await run();
    expect(passedOver).toEqual([{ path: 'groups', why: 'it is a link, or no folder' }]);
    expect(done.map(({ kind }) => kind)).toEqual(['new', 'impossible']);
    expect(await files()).toEqual(['data/workspace/MEMORY.md', 'data/workspace/memory']);
  });

  test.runIf(process.getuid?.() !== 0)('what may not be read', async () => {
    const { run, home } = await setUp({ 'from/MEMORY.md': 'm', 'from/USER.md': 'u' });
    await chmod(join(home, 'from/USER.md'), 0);
    expect((await run()).passedOver).toEqual([{ path: 'USER.md', why: 'its rights forbid to read it' }]);
  });

  test('what is in its place already, for it is our own folder', async () => {
    const { order, home, files } = await setUp({ 'data/workspace/MEMORY.md': 'm' });
    const { done, passedOver } = await importFrom({ ...order, folder: join(home, 'data') });
    expect(done).toEqual([]);
    expect(passedOver).toEqual([expect.objectContaining({ path: 'workspace/MEMORY.md' })]);
    expect(await files()).toEqual(['data/workspace/MEMORY.md']);
  });
});

test('two at once lose nothing: each file appears once, whole', async () => {
  const { order, files, text, put } = await setUp();
  for (let n = 0; n < 40; n++) await put(`from/memory/${n}.md`, `note ${n}\n`.repeat(1000));
  await Promise.all([importFrom(order), importFrom(order), importFrom(order)]);
  const there = await files();
  expect(there).toHaveLength(40);
  for (const file of there) expect((await text(file)).split('\n')).toHaveLength(1001);
});

test('nothing leaves the workspace by a link that an agent has put there', async () => {
  const here = await setUp({
    'from/MEMORY.md': 'mine',
    'from/memory/2026-01-01.md': 'a day',
    'from/memory/sub/deep.md': 'deep',
    'groups/telegram_1/memory/2026-01-02.md': 'another chat',
  });
  await mkdir(join(here.home, 'data/workspace'), { recursive: true });
  await symlink(join(here.home, 'groups/telegram_1/memory'), join(here.home, 'data/workspace/memory'));
  const { done } = await here.run();
  expect(await readdir(join(here.home, 'groups/telegram_1/memory'))).toEqual(['2026-01-02.md']);
  expect(done).toContainEqual(
    expect.objectContaining({
      kind: 'impossible',
      from: ['memory/2026-01-01.md'],
      why: expect.stringContaining('link'),
    }),
  );
  expect(await here.text('data/workspace/MEMORY.md')).toBe('mine');
});

describe('the present layout of MicroClaw', () => {
  test('goes to the persona that is always there: what it knows, about whom, and who it is', async () => {
    const { run, files, text } = await setUp({
      'from/runtime/groups/telegram/4711/AGENTS.md': '# Memory\n\nLikes figs.\n',
      'from/runtime/groups/telegram/4711/USER.md': 'A gardener.\n',
      'from/runtime/groups/4711/SOUL.md': 'You are a dry wit.\n',
      'from/runtime/groups/discord/-5/USER.md': 'Somebody else.\n',
      'from/runtime/groups/web/1/AGENTS.md': 'no such channel',
      'from/runtime/groups/telegram/AGENTS.md': 'of the channel',
      'from/runtime/groups/telegram/4711/context/a.md': 'context',
      'from/souls/Old Bear.md': 'You growl.\n',
      'from/souls/deep/x.md': 'x',
    });
    const { passedOver, done } = await run();
    expect(await files()).toEqual([
      'groups/discord_-5/default/MEMORY.md',
      'groups/personas/old-bear.md',
      'groups/telegram_4711/default/MEMORY.md',
      'groups/telegram_4711/default/PERSONA.md',
    ]);
    expect(await text('groups/telegram_4711/default/MEMORY.md')).toBe(
      '# Memory\n\nLikes figs.\n\n\n# About the user\n\nA gardener.\n',
    );
    expect(await text('groups/telegram_4711/default/PERSONA.md')).toBe('You are a dry wit.\n');
    expect(passedOver.map(({ path }) => path).sort()).toEqual([
      'runtime/groups/telegram/4711/context/a.md',
      'runtime/groups/telegram/AGENTS.md',
      'runtime/groups/web/1/AGENTS.md',
      'souls/deep/x.md',
    ]);
    expect(done.find(({ path }) => path.endsWith('old-bear.md'))?.hint).toContain(
      '/persona new "Old Bear" from old-bear',
    );
    expect((await run()).done.every(({ kind }) => kind === 'same')).toBe(true);
  });
});

test('both layouts of MicroClaw for one chat become one memory', async () => {
  const { run, files, text } = await setUp({
    'from/groups/4711/1/MEMORY.md': 'Old.\n',
    'from/groups/telegram/4711/AGENTS.md': 'New.\n',
    'from/groups/telegram/4711/USER.md': 'A gardener.\n',
  });
  const { done } = await run();
  expect(await files()).toEqual(['groups/telegram_4711/default/MEMORY.md']);
  expect(await text('groups/telegram_4711/default/MEMORY.md')).toBe(
    'Old.\n\n\n# Further memory\n\nNew.\n\n\n# About the user\n\nA gardener.\n',
  );
  expect(done).toMatchObject([
    {
      kind: 'new',
      from: ['groups/4711/1/MEMORY.md', 'groups/telegram/4711/AGENTS.md', 'groups/telegram/4711/USER.md'],
    },
  ]);
});

describe('a persona', () => {
  const personaOf = async (files: Record<string, string>) => {
    const here = await setUp(
      Object.fromEntries(Object.entries(files).map(([name, held]) => [`from/${name}`, held])),
    );
    const { done } = await here.run();
    const made = done.find(({ path }) => path.includes('/personas/'));
    return { made, text: made ? await here.text(made.path.slice(here.home.length + 1)) : null };
  };

  test('is made of SOUL.md and IDENTITY.md, with the name that stands there, and how to use it is told', async () => {
    const { made, text } = await personaOf({
      'SOUL.md': '---\nsummary: x\nread_when:\n  - y\n---\n\n# Soul\n\nBe kind.\n',
      'IDENTITY.md': '# IDENTITY.md\n\n- **Name:** Verso Bear\n- **Vibe:** dry\n',
    });
    expect(made).toMatchObject({
      ...{ kind: 'new', from: ['SOUL.md', 'IDENTITY.md'] },
      hint: expect.stringContaining('/persona new "Verso Bear" from verso-bear'),
      path: expect.stringMatching(/groups\/personas\/verso-bear\.md$/),
    });
    expect(text).toBe(
      '---\nname: "Verso Bear"\n---\n\n# Soul\n\nBe kind.\n\n\n# Identity\n\n# IDENTITY.md\n\n- **Name:** Verso Bear\n- **Vibe:** dry\n',
    );
  });

  test.each([
    ['of SOUL.md alone', { 'SOUL.md': 'Be kind.' }, 'imported'],
    [
      'of a name that was not filled in',
      { 'IDENTITY.md': '- **Name:**\n  _(pick something)_\n' },
      'imported',
    ],
    ['of a name on the next line', { 'IDENTITY.md': '- **Name:**\n  Luna\n' }, 'luna'],
    ['of a name that leads out', { 'IDENTITY.md': 'Name: ../../x\n' }, 'x'],
    ['of a name that is a folder here', { 'IDENTITY.md': 'Name: memory\n' }, 'imported'],
  ])('%s', async (_, files, id) => {
    expect((await personaOf(files)).made?.path).toMatch(new RegExp(`/groups/personas/${id}\\.md$`));
  });
});

describe('the rest', () => {
  const REST = {
    'from/workspace/MEMORY.md': 'm',
    'from/workspace-work/MEMORY.md': 'other',
    'from/workspace-work/SOUL.md': 'other',
    'from/cron/jobs.json': '{}',
    'from/agents/main/sessions/a.jsonl': '{}',
    'from/agents/main/agent/auth-profiles.json': '{}',
    'from/openclaw.json': '{}',
    'from/credentials/token.json': 'SECRET',
    'from/memory.sqlite': 'x',
    'from/canvas/index.html': 'x',
  };

  test('is named, every file of it, with a reason', async () => {
    const { run, home } = await setUp(REST);
    await mkdir(join(home, 'from/empty/deep'), { recursive: true });
    for (let n = 0; n < 300; n++) await writeFile(join(home, `from/canvas/${n}.js`), '');
    const { passedOver } = await run();
    const why = Object.fromEntries(passedOver.map((each) => [each.path, each.why]));
    expect(Object.keys(why).sort()).toEqual([
      'agents/main/agent/auth-profiles.json',
      'agents/main/sessions/a.jsonl',
      'canvas',
      'credentials/token.json',
      'cron/jobs.json',
      'empty/deep',
      'memory.sqlite',
      'openclaw.json',
      'workspace-work/MEMORY.md',
      'workspace-work/SOUL.md',
    ]);
    expect(why['workspace-work/MEMORY.md']).toContain('workspace of another agent');
    expect(why['cron/jobs.json']).toContain('schedules are not brought in');
    expect(why['agents/main/sessions/a.jsonl']).toContain('sessions');
    expect(why.canvas).toMatch(/^301 files: /);
  });

  test('of a large folder does not take long', async () => {
    const { run, home } = await setUp({ 'from/MEMORY.md': 'm' });
    for (let folder = 0; folder < 40; folder++) {
      await mkdir(join(home, `from/.cache/${folder}`), { recursive: true });
      for (let n = 0; n < 50; n++) await writeFile(join(home, `from/.cache/${folder}/${n}`), '');
    }
    expect((await run()).passedOver).toEqual([{ path: '.cache', why: 'it is hidden' }]);
  });
});

test('a persona of a name that the library has is beside it, and no command is told that would make the other one', async () => {
  const { run } = await setUp({
    'groups/personas/fern.md': 'mine',
    'from/SOUL.md': 'Be kind.',
    'from/IDENTITY.md': '- Name: Fern\n',
  });
  for (const kind of ['beside', 'same']) {
    const made = (await run()).done.find(({ path }) => path.includes('/personas/'));
    expect(made).toMatchObject({ kind, hint: expect.stringContaining('a name of its own') });
    expect(made?.hint).not.toContain('/persona new');
  }
});

describe('a dry run', () => {
  test.each([
    ['nothing there', {}],
    [
      'something in each place',
      {
        'data/workspace/MEMORY.md': 'mine',
        'groups/personas/imported.md': 'mine',
        'groups/telegram_4711/default/MEMORY.md': 'mine',
        'data/skills': 'a file in the way',
      },
    ],
  ])('writes nothing and says the same: %s', async (_, there) => {
    const { run, order, files, home } = await setUp({
      ...there,
      'from/MEMORY.md': 'm',
      'from/SOUL.md': 's',
      'from/memory/2026-02-10.md': 'd',
      'from/skills/a/SKILL.md': 'a',
      'from/groups/telegram/4711/AGENTS.md': 'one',
      'from/groups/4711/1/MEMORY.md': 'two',
      'from/groups/4711/1/PERSONA.md': 'three',
      'from/groups/4711/SOUL.md': 'four',
      'from/cron/jobs.json': '{}',
    });
    const before = await files();
    const planned = await run({ ...order, isDryRun: true });
    expect(await files()).toEqual(before);
    const plain = ({ done, ...rest }: typeof planned) => ({
      ...rest,
      done: done.map(({ kind, path, from }) => [kind, path.slice(home.length), from]),
    });
    expect(plain(planned)).toEqual(plain(await run()));
  });
});
