/** The guard for paths: whatever a model names, nothing but regular files of its two folders is opened. */
import { execFileSync } from 'node:child_process';
import { chmod, mkdir, readFile as read, readdir, rm, stat, symlink, truncate } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { editFile, readFile, writeFile } from '../../../src/tools/files/read-write.js';
import { HERE, type Home, MEDIA, makeHome, WORK } from './support.js';

/** All that a persona must not reach lies around its folder, as in a real home. */
async function setUp() {
  const home = await makeHome();
  const secret = 'SECRET';
  for (const file of [
    'config.yaml',
    'groups/AGENTS.md',
    `groups/${HERE}/luna/MEMORY.md`,
    'data/coterie.db',
    `data/work/${HERE}/luna-two/a.txt`,
    `data/work/${HERE}/max/a.txt`,
    'data/work/telegram_11/luna/a.txt',
    'data/media/telegram_11/a.txt',
    `data/media/${HERE}-two/a.txt`,
  ]) {
    await home.put(file, secret);
  }
  await home.put(`${WORK}/a.txt`, 'mine');
  await home.put(`${MEDIA}/sent.txt`, 'sent');
  const reads = (path: string) => home.call(readFile(home.folders), { path });
  const writes = (path: string, content = 'x') => home.call(writeFile(home.folders), { path, content });
  const edits = (path: string) =>
    home.call(editFile(home.folders), { path, old_string: 'SECRET', new_string: 'x' });
  /** Nothing of the kind is read, written or changed. */
  const isClosed = async (path: string) => {
    const before = await secretsIn(home);
    for (const attempt of [reads, writes, edits]) {
      const { content, failed } = await attempt(path);
      expect({ content, failed }).toEqual({ content: expect.not.stringContaining(secret), failed: true });
      expect(content).not.toContain(home.home);
    }
    expect(await secretsIn(home)).toEqual(before);
  };
  return { ...home, reads, writes, edits, isClosed };
}

/** Every file outside of the persona's own folders, with what stands in it. */
async function secretsIn({ home }: Home): Promise<string[]> {
  const all = await readdir(home, { recursive: true, withFileTypes: true });
  const files = all.filter((each) => each.isFile()).map((each) => join(each.parentPath, each.name));
  const outside = files.filter((file) => !file.startsWith(`${join(home, WORK)}/`)).sort();
  return Promise.all(outside.map(async (file) => `${file}: ${await read(file, 'utf8')}`));
}

test('the folder is made at its first use, for its user alone', async () => {
  const { home, folders, call } = await makeHome();
  expect(await call(writeFile(folders), { path: 'notes/a.md', content: 'hi' })).toEqual({
    content: 'notes/a.md was written (2 bytes).',
    failed: false,
  });
  expect(await read(join(home, WORK, 'notes/a.md'), 'utf8')).toBe('hi');
  for (const path of ['data/work', WORK, `${WORK}/notes`]) {
    expect((await stat(join(home, path))).mode & 0o777).toBe(0o700);
  }
  expect((await stat(join(home, WORK, 'notes/a.md'))).mode & 0o777).toBe(0o600);
  expect(await readdir(join(home, WORK, 'notes'))).toEqual(['a.md']);
});

test('without an authorisation nothing is opened, and no folder made', async () => {
  const { home, folders, call } = await makeHome();
  for (const [tool, given] of [
    [readFile(folders), { path: 'a' }],
    [writeFile(folders), { path: 'a', content: 'x' }],
  ] as const) {
    const result = await call(tool as never, given, { authorisation: undefined });
    expect(result).toMatchObject({ failed: true, content: expect.stringContaining('Permission denied') });
  }
  expect(await readdir(home)).toEqual([]);
});

test('what was stopped is not written', async () => {
  const { folders, call, home } = await makeHome();
  const signal = AbortSignal.abort();
  expect((await call(writeFile(folders), { path: 'a', content: 'x' }, { signal })).failed).toBe(true);
  expect(await readdir(home)).toEqual([]);
});

describe('a path by its words', () => {
  test.each([
    '../max/a.txt',
    '../luna-two/a.txt',
    `../../telegram_11/luna/a.txt`,
    'x/../../max/a.txt',
    './../../../../config.yaml',
    '../../../coterie.db',
    '..',
    '/etc/passwd',
    '//etc/passwd',
    '/',
    '/proc/self/environ',
    '/work/../etc/passwd',
    'media/../../max/a.txt',
    'media/../../../media/telegram_11/a.txt',
    '../../../../groups/AGENTS.md',
    'a.txt\0.png',
    '\0',
    'x'.repeat(300),
    'x/'.repeat(3000),
    '.',
    '',
    'media',
    'MEDIA/sent.txt/..',
    `media/../${'../'.repeat(40)}etc/passwd`,
  ])('%j leads nowhere', async (path) => {
    const { isClosed } = await setUp();
    await isClosed(path);
  });

  test('from outside the real folders is refused too, with the whole path', async () => {
    const { home, isClosed } = await setUp();
    for (const file of [
      'config.yaml',
      'data/coterie.db',
      `data/work/${HERE}/luna-two/a.txt`,
      `${MEDIA}-two/a.txt`,
    ]) {
      await isClosed(join(home, file));
    }
  });

  test('that stays inside is read: plain, roundabout, as the sandbox shows it, as a whole path', async () => {
    const { home, reads } = await setUp();
    for (const path of ['a.txt', './x/../a.txt', '/work/a.txt', join(home, WORK, 'a.txt')]) {
      expect((await reads(path)).content).toContain('mine');
    }
    for (const path of ['media/sent.txt', './media//sent.txt', 'MEDIA/sent.txt', '/work/media/sent.txt']) {
      expect((await reads(path)).content).toContain('sent');
    }
  });

  test('what people sent is never written', async () => {
    const { writes, call, folders, home } = await setUp();
    for (const path of ['media/sent.txt', 'media/new.txt', 'Media/new.txt', 'x/../media/new.txt', 'media']) {
      expect(await writes(path)).toMatchObject({ failed: true });
    }
    await call(editFile(folders), { path: 'media/sent.txt', old_string: 'sent', new_string: 'x' });
    expect(await read(join(home, MEDIA, 'sent.txt'), 'utf8')).toBe('sent');
    expect(await readdir(join(home, MEDIA))).toEqual(['sent.txt']);
  });
});

describe('a link', () => {
  const TARGETS: [name: string, target: string][] = [
    ['to a file outside', '../../../../config.yaml'],
    ['to the database', '../../../coterie.db'],
    ['to a sibling with the same prefix', '../luna-two/a.txt'],
    ['to an absolute path', '/etc/passwd'],
    ['that leads nowhere, outside', '../../../../new.txt'],
    ['to a process', '/proc/self/environ'],
    ['to itself', 'link'],
  ];

  test.each(TARGETS)('%s', async (_, target) => {
    const { home, isClosed } = await setUp();
    await symlink(target, join(home, WORK, 'link'));
    await isClosed('link');
    await symlink('link', join(home, WORK, 'second'));
    await isClosed('second');
  });

  test.each(['..', '../luna-two', '../../../../groups', '/', '/proc/self/cwd', '../nowhere'])(
    'as a folder, to %s',
    async (target) => {
      const { home, isClosed } = await setUp();
      await symlink(target, join(home, WORK, 'link'));
      for (const path of [
        'link/a.txt',
        'link/AGENTS.md',
        'link/new/deep.txt',
        'link/etc/passwd',
        'link/../a',
      ]) {
        if (path === 'link/../a') continue;
        await isClosed(path);
      }
    },
  );

  test('that stays inside is gone through, for reading and writing', async () => {
    const { home, reads, writes } = await setUp();
    await mkdir(join(home, WORK, 'real'));
    await symlink('real', join(home, WORK, 'folder'));
    await symlink('a.txt', join(home, WORK, 'file'));
    expect((await reads('file')).content).toContain('mine');
    expect((await writes('folder/new/b.txt', 'b')).failed).toBe(false);
    expect((await writes('file', 'changed')).failed).toBe(false);
    expect(await read(join(home, WORK, 'real/new/b.txt'), 'utf8')).toBe('b');
    expect(await read(join(home, WORK, 'a.txt'), 'utf8')).toBe('changed');
  });

  test('of an operator, who keeps the folders on another disk', async () => {
    const { home, folders, call } = await makeHome();
    await mkdir(join(home, 'disk'));
    await mkdir(join(home, 'data'));
    await symlink('../disk', join(home, 'data/work'));
    expect((await call(writeFile(folders), { path: 'a.txt', content: 'x' })).failed).toBe(false);
    expect(await read(join(home, `disk/${HERE}/luna/a.txt`), 'utf8')).toBe('x');
  });

  /** Somebody puts it there again and again while files are read and written: no look may be trusted for long. */
  test('that is put there and taken away meanwhile', async () => {
    const { home, put, reads, writes } = await setUp();
    await put('outside/a.txt', 'SECRET');
    const folder = join(home, WORK, 'swapped');
    let isOver = false;
    // A write may have been faster, and made it.
    const tried = (step: Promise<unknown>) => step.catch(() => {});
    const swapping = (async () => {
      while (!isOver) {
        await tried(rm(folder, { recursive: true }));
        await tried(symlink(join(home, 'outside'), folder));
        await tried(rm(folder));
        await tried(mkdir(folder));
      }
    })();
    for (let n = 0; n < 300; n++) {
      expect((await reads('swapped/a.txt')).content).not.toContain('SECRET');
      await writes(`swapped/b-${n}.txt`);
    }
    isOver = true;
    await swapping;
    expect(await readdir(join(home, 'outside'))).toEqual(['a.txt']);
  });
});

describe('what is no file', () => {
  test('a pipe keeps nobody waiting, for reading and writing', async () => {
    const { home, isClosed } = await setUp();
    execFileSync('mkfifo', [join(home, WORK, 'pipe')]);
    await isClosed('pipe');
  });

  test('a socket, a device, a folder', async () => {
    const { home, isClosed } = await setUp();
    const server = createServer().listen(join(home, WORK, 'socket'));
    onTestFinished(() => void server.close());
    await new Promise((resolve) => server.once('listening', resolve));
    await isClosed('socket');
    await mkdir(join(home, WORK, 'folder'));
    await isClosed('folder');
    if (process.getuid?.() !== 0) return;
    execFileSync('mknod', [join(home, WORK, 'device'), 'c', '1', '5']);
    await isClosed('device');
  });

  test.runIf(process.getuid?.() !== 0)('a file without rights', async () => {
    const { home, reads } = await setUp();
    await chmod(join(home, WORK, 'a.txt'), 0);
    expect(await reads('a.txt')).toMatchObject({ failed: true, content: expect.stringContaining('rights') });
  });
});

describe('how much', () => {
  test('a file of 1 GB is neither read nor changed', async () => {
    const { home, reads, edits } = await setUp();
    await truncate(join(home, WORK, 'a.txt'), 1_000_000_000);
    expect((await reads('a.txt')).content).toMatch(/too large: it has 1\.0 GB/);
    expect((await edits('a.txt')).failed).toBe(true);
  });

  test('a full folder takes nothing more, but may be made smaller', async () => {
    const { home, folders, call } = await makeHome();
    const small = { ...folders, quota: { bytes: 1000, entries: 5 } };
    const tool = writeFile(small);
    const write = (path: string, bytes: number) => call(tool, { path, content: 'x'.repeat(bytes) });
    expect((await write('a', 600)).failed).toBe(false);
    expect(await write('b', 401)).toMatchObject({
      failed: true,
      content: expect.stringContaining('is full'),
    });
    expect((await write('b', 400)).failed).toBe(false);
    expect((await write('a', 601)).failed).toBe(true);
    await truncate(join(home, WORK, 'a'), 5000);
    expect((await write('b', 399)).failed).toBe(false);
    expect((await write('a', 10)).failed).toBe(false);
    for (const name of ['c', 'd', 'e']) expect((await write(name, 1)).failed).toBe(false);
    expect((await write('f', 1)).content).toContain('is full');
    expect((await write('a', 11)).failed).toBe(false);
    const edit = { path: 'a', old_string: 'x'.repeat(11), new_string: 'y'.repeat(1000) };
    const edited = await call(editFile(small), edit);
    expect(edited.content).toContain('is full');
  });

  test('nothing is written deeper than can be counted, so that a folder stays of use', async () => {
    const { folders, call } = await makeHome();
    const write = (path: string) => call(writeFile(folders), { path, content: 'x' });
    expect((await write(`${'x/'.repeat(40)}a`)).content).toContain('too deep');
    expect((await write(`${'x/'.repeat(39)}a`)).failed).toBe(false);
    expect((await write('a')).failed).toBe(false);
  });

  test('folders too deep to be counted count as too much', async () => {
    const { home, folders, call } = await makeHome();
    await mkdir(join(home, WORK, 'x/'.repeat(60)), { recursive: true });
    expect((await call(writeFile(folders), { path: 'a', content: 'x' })).content).toContain('is full');
    await rm(join(home, WORK, 'x'), { recursive: true });
    expect((await call(writeFile(folders), { path: 'a', content: 'x' })).failed).toBe(false);
  });
});
