import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Task } from '../../src/core/task.js';
import { placeOf } from '../../src/delegation/place.js';
import { readViapTask } from '../../src/delegation/viap/task.js';
import { PARENT } from './support.js';

let here: string;
beforeEach(async () => {
  here = await realpath(await mkdtemp(join(tmpdir(), 'coterie-place-')));
  for (const name of ['workspace', 'further', 'outside']) await mkdir(join(here, name));
});
afterEach(() => rm(here, { recursive: true }));

function folders() {
  return {
    ...{ workspace: join(here, 'workspace'), artifacts: join(here, 'artifacts'), work: join(here, 'work') },
    further: [join(here, 'further'), join(here, 'is not there')],
  };
}

async function placed(cwd: string | null, inputs: object = {}, isOwner = true) {
  const read = readViapTask({
    ...{ viap_version: '3', type: 'VIAP_V3_TASK', task_id: 'x', title: 'x', goal: 'x', instructions: ['x'] },
    ...{ context: { cwd }, inputs },
  });
  if (!read.ok) throw new Error(read.reason);
  const task = { id: 'k1', agent: 'utility', parent: PARENT } as Task;
  return placeOf(task, read.task, {
    folders: folders(),
    spaces: { own: join(here, 'space'), shared: join(here, 'shared') },
    isOwner,
  });
}

describe('where an agent works', () => {
  it('is the workspace, for a program', async () => {
    const place = await placeOf({ id: 'k1', agent: 'utility', parent: null } as Task, null, {
      ...{ folders: folders(), spaces: { own: 'space', shared: 'shared' }, isOwner: true },
    });
    expect(place).toMatchObject({ id: 'utility', taskId: 'k1', cwd: join(here, 'workspace') });
    expect(place.roots).toEqual([join(here, 'workspace'), join(here, 'artifacts'), join(here, 'further')]);
    expect(place.env).toEqual({
      OPENCLAW_WORKSPACE: join(here, 'workspace'),
      MEMORY_DIR: join(here, 'workspace/memory'),
    });
  });

  it('is the persona’s own folder, for a task without a word of where', async () => {
    const own = join(here, 'work/test_1/default');
    expect(await placed(null)).toMatchObject({ cwd: own, roots: expect.arrayContaining([own]) });
  });

  it('is the folder that the task names, made where it is not there', async () => {
    expect(await placed(join(here, 'workspace'))).toMatchObject({ cwd: join(here, 'workspace') });
    expect(await placed(join(here, 'further/a/b'))).toMatchObject({ cwd: join(here, 'further/a/b') });
    expect(await placed('inside')).toMatchObject({ cwd: join(here, 'work/test_1/default/inside') });
  });

  it('is neither the workspace nor what others had made, on the word of somebody who is no owner', async () => {
    const place = await placed(join(here, 'workspace'), {}, false);
    const own = [join(here, 'artifacts/k1'), join(here, 'work/test_1/default'), join(here, 'further')];
    expect(place).toMatchObject({ cwd: null, roots: own });
    expect(Object.keys(place.env)).toEqual(['VIAP_ARGS']);
    expect(await placed(join(here, 'artifacts'), {}, false)).toMatchObject({ cwd: null });
  });

  it('is nowhere for a folder outside the roots, whichever way it leads there', async () => {
    await symlink(join(here, 'outside'), join(here, 'workspace/link'));
    await writeFile(join(here, 'workspace/file'), '');
    for (const cwd of [
      'outside',
      'workspace/../outside',
      'workspace/link',
      'workspace/link/new',
      'workspace-evil',
    ]) {
      expect((await placed(join(here, cwd))).cwd, cwd).toBeNull();
    }
    expect((await placed('../../../outside')).cwd).toBeNull();
    expect((await placed('a\0b')).cwd).toBeNull();
    expect((await placed(join(here, 'workspace/file'))).cwd, 'a file').toBeNull();
  });

  it('gives commands what the task says, and its arguments as JSON', async () => {
    const { env } = await placed(null, {
      env: { MEMORY_DIR: '/elsewhere', N: 3 },
      args: ['--review', 'a b'],
    });
    expect(env).toMatchObject({ MEMORY_DIR: '/elsewhere', N: '3', VIAP_ARGS: '["--review","a b"]' });
    expect(env.OPENCLAW_WORKSPACE).toBe(join(here, 'workspace'));
  });
});
