/** Files of memory that are large, or many. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { begin, compileWorker, SCOPE, until } from './support.js';

let worker: Awaited<ReturnType<typeof compileWorker>>;
beforeAll(async () => {
  worker = await compileWorker();
});
afterAll(() => worker.remove());

describe('a search of files', () => {
  it('of 10 MB goes on in the background, and its former text is found meanwhile', async () => {
    const { files, find, recall } = await begin(worker.entry, { refreshMs: 1 });
    files.put(SCOPE, 'memory/2026-01-02.md', 'a note about puffins');
    await until(async () => (await find('puffins')).length > 0, 'the small file to be indexed');
    const big = 'a line of nothing much, again and again and again\n'.repeat(200_000);
    files.put(SCOPE, 'memory/2026-01-02.md', `${big}a note about razorbills\n`);
    expect(await find('puffins')).toEqual(['a note about puffins']);
    expect(recall.status().waiting).toBe(1);
    await until(() => recall.status().waiting === 0, 'the large file to be indexed');
    expect((await find('razorbills'))[0]).toBe('a note about razorbills');
    expect(await find('puffins')).toEqual([]);
  });

  it('takes 10,000 files', async () => {
    const { files, find } = await begin(worker.entry, { refreshMs: 1 });
    for (let n = 0; n < 10_000; n++) {
      files.put(
        SCOPE,
        `memory/${new Date(Date.UTC(1990, 0, 1 + n)).toISOString().slice(0, 10)}.md`,
        `entry ${n} of the log`,
      );
    }
    const isFound = async () => (await find('entry 7777')).includes('entry 7777 of the log');
    expect(await isFound()).toBe(false);
    await until(isFound, 'all files to be indexed');
  });
});
