/**
 * The three kinds of places: a persona's, an owner's in a control chat, an agent's on a task. Whatever path is named, by
 * words or through links, nothing outside of them is read, written or listed.
 */
import { mkdir, readFile as read, readdir, rename, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AgentPlace, Authorisation } from '../../../src/core/authorisation.js';
import { systemClock } from '../../../src/core/clock.js';
import { createSlots } from '../../../src/core/concurrency.js';
import { BOARD_CHAT } from '../../../src/core/task.js';
import { glob, grep } from '../../../src/tools/files/find.js';
import { editFile, readFile, writeFile } from '../../../src/tools/files/read-write.js';
import { askerWho } from '../../harness/asker.js';
import { generator } from '../../harness/random.js';
import { rounds } from '../../harness/rounds.js';
import { CALLER, compileSearch, HERE, MEDIA, makeHome, WORK } from './support.js';

let search: Awaited<ReturnType<typeof compileSearch>>;
beforeAll(async () => {
  search = await compileSearch();
});
afterAll(() => search.remove());

const SEED = Number(process.env.COTERIE_SEED ?? Date.now() % 1_000_000);

const KINDS = ['persona', 'workspace', 'agent', 'program'] as const;
type Kind = (typeof KINDS)[number];

const SECRET = 'SECRET';
/** What nobody may reach, whatever kind it is. The agents' roots are `project` and the workspace. */
const SECRETS = [
  ...['config.yaml', 'groups/AGENTS.md', `groups/${HERE}/luna/MEMORY.md`, 'data/coterie.db'],
  ...['data/work/telegram_2/luna/a.txt', 'data/media/telegram_2/a.txt', 'project-evil/a.txt'],
  ...['data/workspace-evil/a.txt', 'data/agents/other/internal_space/MEMORY.md', 'outside/a.txt'],
  ...['project/own-data/coterie.db', 'project/deep/groups/AGENTS.md', 'project/secret.yaml'],
];

async function setUp(kind: Kind, changes: Partial<AgentPlace> = {}) {
  const home = await makeHome();
  const at = (path: string) => join(home.home, path);
  for (const file of SECRETS) await home.put(file, SECRET);
  for (const file of ['project/a.txt', 'project/sub/b.txt', 'data/workspace/a.txt', `${WORK}/a.txt`]) {
    await home.put(file, 'mine');
  }
  await home.put('data/agents/utility/internal_space/MEMORY.md', 'own');
  await home.put('data/skills/weather/SKILL.md', 'skill');
  await home.put(`${MEDIA}/sent.txt`, 'sent');
  // As an operator may have it who gives agents a folder in which the gateway itself lies.
  const hidden = [
    ...home.folders.hidden,
    ...['own-data', 'deep/groups', 'secret.yaml'].map((each) => at(`project/${each}`)),
  ];
  const agent: AgentPlace = {
    ...{ id: 'utility', taskId: 't1', cwd: at('project'), roots: [at('project'), at('data/workspace')] },
    ...{
      env: {},
      space: at('data/agents/utility/chats/telegram_1'),
      shared: { folder: at('data/agents/utility/internal_space'), mayWrite: true },
    },
    ...changes,
  };
  const authorisation: Authorisation = {
    persona: CALLER,
    workspace: { ...CALLER, controlChats: [HERE], asker: askerWho({ own: true }) },
    // It works for an owner in a control chat, which gives it nothing.
    agent: { ...CALLER, controlChats: [HERE], asker: askerWho({ own: true }), agent },
    program: { ...CALLER, chatId: BOARD_CHAT, channel: 'board', asker: askerWho({ own: true }), agent },
  }[kind];
  const folders = { ...home.folders, hidden };
  const find = { folders, slots: createSlots(8), clock: systemClock, worker: search.entry };
  const call: typeof home.call = (tool, given) => home.call(tool, given, { authorisation });
  return {
    ...{ ...home, at, folders },
    start: { persona: WORK, workspace: 'data/workspace', agent: 'project', program: 'project' }[kind],
    reads: (path: string) => call(readFile(folders), { path }),
    writes: (path: string, content = 'x') => call(writeFile(folders), { path, content }),
    edits: (path: string) => call(editFile(folders), { path, old_string: SECRET, new_string: 'x' }),
    globs: (path: string, pattern = '**') => call(glob(find), { pattern, path }),
    greps: (path: string) => call(grep(find), { pattern: SECRET, path }),
    secrets: () => Promise.all(SECRETS.map((file) => read(at(file), 'utf8'))),
  };
}

describe.each(KINDS)('of a %s', (kind) => {
  test('relative paths begin in its folder', async () => {
    const { reads, writes, globs, at, start } = await setUp(kind);
    expect((await reads('a.txt')).content).toContain('mine');
    expect((await writes('new/b.txt', 'b')).failed).toBe(false);
    expect(await read(at(`${start}/new/b.txt`), 'utf8')).toBe('b');
    expect((await reads(at(`${start}/new/b.txt`))).content).toContain('b');
    expect((await globs('', 'new/*')).content).toBe('new/b.txt');
    expect((await globs(at(`${start}/new`), '*')).content).toBe('new/b.txt');
  });

  test('nothing else is reached by words: absolute, by .., siblings, capitals, marks', async () => {
    const { at, reads, writes, edits, globs, greps, secrets } = await setUp(kind);
    const before = await secrets();
    const paths = SECRETS.flatMap((file) => [
      at(file),
      `../${file}`,
      `../../../../${file}`,
      `media/../../${file}`,
    ]);
    for (const path of [
      ...paths,
      '/etc/passwd',
      '/',
      '..',
      '/proc/self/environ',
      '\0',
      at('data'),
      at('groups'),
    ]) {
      for (const attempt of [reads, writes, edits, globs, greps]) {
        const { content, failed } = await attempt(path);
        expect(content).not.toContain(SECRET);
        if (attempt !== globs && attempt !== greps) expect({ path, failed }).toEqual({ path, failed: true });
      }
    }
    expect(await secrets()).toEqual(before);
  });

  test('nothing else is reached through links, nor listed', async () => {
    const { at, reads, writes, edits, globs, greps, secrets, start } = await setUp(kind);
    const before = await secrets();
    for (const [n, file] of SECRETS.entries()) {
      await symlink(at(file), at(`${start}/file-${n}`));
      await symlink(join(at(file), '..'), at(`${start}/folder-${n}`));
      const name = file.split('/').at(-1);
      for (const path of [`file-${n}`, `folder-${n}/${name}`, at(`${start}/file-${n}`)]) {
        // The folder of some of them is one that is open.
        for (const attempt of [reads, edits, writes]) {
          expect((await attempt(path)).content).not.toContain(SECRET);
          expect((await attempt(path)).failed).toBe(true);
        }
      }
      await greps(`folder-${n}`).then(({ content }) => expect(content).not.toContain(SECRET));
    }
    expect((await greps('')).content).not.toContain(SECRET);
    expect((await globs('')).content).not.toMatch(/coterie\.db|secret\.yaml|AGENTS\.md/);
    expect(await secrets()).toEqual(before);
  });

  test('by no path made of what may lead out, by chance', async () => {
    const { at, reads, writes, secrets, start, home } = await setUp(kind);
    process.stderr.write(`COTERIE_SEED=${SEED}\n`);
    const chance = generator(SEED);
    const below = (most: number) => Math.floor(chance() * most);
    await symlink('..', at(`${start}/up`));
    await symlink(home, at(`${start}/home`));
    await symlink('/', at(`${start}/slash`));
    const before = await secrets();
    const parts = [
      ...[
        '..',
        '.',
        '',
        'up',
        'home',
        'slash',
        'media',
        'MEDIA',
        'project',
        'project-evil',
        'data',
        'groups',
      ],
      ...[
        'workspace',
        'workspace-evil',
        'work',
        HERE,
        'luna',
        'a.txt',
        'AGENTS.md',
        'coterie.db',
        'config.yaml',
      ],
      ...[
        'WORKSPACE',
        'pro\u200bject',
        'e\u0301',
        '\u00e9',
        '\uff0e\uff0e',
        'own-data',
        'skills',
        home.slice(1),
      ],
    ];
    for (let n = 0; n < rounds({ few: 100, many: 200 }); n++) {
      const count = 1 + below(7);
      const path =
        (below(3) === 0 ? '/' : '') +
        Array.from({ length: count }, () => parts[below(parts.length)]).join('/');
      expect((await reads(path)).content).not.toContain(SECRET);
      if (!/sent\.txt|SKILL/.test(path)) await writes(path);
    }
    expect(await secrets()).toEqual(before);
    expect((await readdir(home)).sort()).toEqual(
      ['config.yaml', 'data', 'groups', 'outside', 'project', 'project-evil'].sort(),
    );
  });

  test('not while somebody puts a link in the place of a folder again and again', async () => {
    const { at, reads, writes, globs, start } = await setUp(kind);
    const folder = at(`${start}/swapped`);
    let isOver = false;
    const tried = (step: Promise<unknown>) => step.catch(() => {});
    const swapping = (async () => {
      while (!isOver) {
        await tried(rm(folder, { recursive: true }));
        await tried(symlink(at('outside'), folder));
        await tried(rm(folder));
        await tried(mkdir(folder));
      }
    })();
    try {
      for (let n = 0; n < 80; n++) {
        expect((await reads('swapped/a.txt')).content).not.toContain(SECRET);
        expect((await reads(join(folder, 'a.txt'))).content).not.toContain(SECRET);
        await writes(`swapped/b-${n}.txt`);
      }
      for (let n = 0; n < 5; n++) expect((await globs('swapped')).content).not.toContain('a.txt');
    } finally {
      isOver = true;
      await swapping;
    }
    expect(await readdir(at('outside'))).toEqual(['a.txt']);
  });
});

describe('media/', () => {
  test.each(['persona', 'workspace', 'agent'] as const)(
    'of a %s is what people sent, for reading',
    async (kind) => {
      const { reads, writes, globs } = await setUp(kind);
      for (const path of ['media/sent.txt', 'MEDIA/sent.txt'])
        expect((await reads(path)).content).toContain('sent');
      expect((await writes('media/new.txt')).content).toContain('only for reading');
      expect((await globs('')).content).toContain('media/sent.txt');
    },
  );

  test("of a program's task is a folder like any other", async () => {
    const { reads, writes, at } = await setUp('program');
    expect((await reads('media/sent.txt')).content).toBe('There is no media/sent.txt.');
    expect((await reads(at(`${MEDIA}/sent.txt`))).failed).toBe(true);
    expect((await writes('media/new.txt')).failed).toBe(false);
  });
});

describe('an agent', () => {
  test('reaches every root and its internal space by whole paths, and by .. from one into another', async () => {
    const { at, reads, writes } = await setUp('agent');
    expect((await reads(at('data/workspace/a.txt'))).content).toContain('mine');
    expect((await reads('../data/workspace/a.txt')).content).toContain('mine');
    expect((await reads(at('data/agents/utility/internal_space/MEMORY.md'))).content).toContain('own');
    expect((await writes(at('data/agents/utility/internal_space/MEMORY.md'), 'new')).failed).toBe(false);
    expect((await writes(at('data/workspace/task.md'), '# Plan')).failed).toBe(false);
  });

  test('may name a root by a link that leads to it, and go through links from one into another', async () => {
    const { at, reads, writes } = await setUp('agent');
    await symlink(at('project'), at('by-link'));
    expect((await reads(at('by-link/a.txt'))).content).toContain('mine');
    expect((await writes(at('by-link/new/c.txt'))).failed).toBe(false);
    await symlink(at('data/workspace'), at('project/workspace'));
    expect((await writes('workspace/c.txt')).failed).toBe(false);
    expect(await read(at('data/workspace/c.txt'), 'utf8')).toBe('x');
  });

  test('without a folder of its own begins in the first root; a folder that is not there is made by writing', async () => {
    const { reads } = await setUp('agent', { cwd: null });
    expect((await reads('a.txt')).content).toContain('mine');
    const home = await makeHome();
    const project = join(home.home, 'p');
    await mkdir(project);
    const other = await setUp('agent', { cwd: join(project, 'not/yet'), roots: [project] });
    expect((await other.writes('a.txt')).failed).toBe(false);
    expect(await read(join(project, 'not/yet/a.txt'), 'utf8')).toBe('x');
  });

  test('reads skills, and writes none; told plainly where it may not go', async () => {
    const { at, reads, writes } = await setUp('agent');
    await symlink('../skills', at('data/workspace/skills'));
    expect((await reads(at('data/workspace/skills/weather/SKILL.md'))).content).toContain('skill');
    expect((await writes(at('data/workspace/skills/weather/SKILL.md'))).content).toContain(
      'only for reading',
    );
    expect((await writes(at('data/skills/new/SKILL.md'))).failed).toBe(true);
    const { content } = await reads('/Users/x/verso/MEMORY.md');
    expect(content).toMatch(
      /^Permission denied: this path leads out of the folders of this task, which are \//,
    );
  });

  test('loses a root in whose place somebody has put a link', async () => {
    const { at, reads } = await setUp('agent', {});
    await rename(at('project'), at('project-moved'));
    await symlink(at('outside'), at('project'));
    expect((await reads('a.txt')).content).not.toContain(SECRET);
    expect((await reads(at('project/a.txt'))).content).not.toContain(SECRET);
  });

  test('has no bound in a folder of the operator, and one in those of the gateway', async () => {
    const { at, folders, call } = await setUp('agent');
    const work = at(WORK);
    const agent: AgentPlace = {
      ...{ id: 'utility', taskId: 't', cwd: at('project'), roots: [at('project'), work], env: {} },
      space: at('data/agents/utility/chats/telegram_1'),
      shared: { folder: at('data/agents/utility/internal_space'), mayWrite: true },
    };
    const small = { ...folders, quota: { bytes: 10, entries: 5 } };
    const write = (path: string) =>
      call(writeFile(small), { path, content: 'x'.repeat(100) }, { authorisation: { ...CALLER, agent } });
    expect((await write('big.txt')).failed).toBe(false);
    expect((await write(join(work, 'big.txt'))).content).toContain('is full');
  });
});

test('what somebody says who is no owner, in a control chat, leads to the working folder of the persona', async () => {
  const { folders, call, home } = await makeHome();
  for (const own of [true, false]) {
    const authorisation = { ...CALLER, controlChats: [HERE], asker: askerWho({ own }) };
    await call(writeFile(folders), { path: `${own}.txt`, content: 'x' }, { authorisation });
  }
  expect(await readdir(join(home, 'data/workspace'))).toEqual(['true.txt']);
  expect(await readdir(join(home, WORK))).toEqual(['false.txt']);
});
