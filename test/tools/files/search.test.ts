/** What a search does with a place that is no folder any more when the search gets there. */
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { searchIn } from '../../../src/tools/files/search-worker.js';

test('what has gone, is a file or a link since its path was looked up is passed over, and the rest is found', async () => {
  const root = await mkdtemp(join(tmpdir(), 'coterie-search-'));
  onTestFinished(() => rm(root, { recursive: true }));
  await writeFile(join(root, 'a.txt'), '');
  await symlink('/etc', join(root, 'link'));
  const place = (...names: string[]) => ({ root, names, before: '', matched: '' });
  const folders = [place('gone'), place('a.txt'), place('link'), place()];
  const most = { entries: 100, found: 100 };
  const order = { folders, closed: [], media: null, file: null, glob: null, lines: null, most };
  expect((await searchIn(order)).found).toEqual(['a.txt']);
  const gone = { ...place(), root: join(root, 'no-such-root') };
  expect((await searchIn({ ...order, folders: [gone] })).found).toEqual([]);
});
