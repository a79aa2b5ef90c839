/** The indexing thread runs only while there is something for it to do, and nothing is lost when it does not. */
import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { memoryFeed, memoryFiles } from './memory-feed.js';
import { begin, compileWorker, NOW, newFolder, ROOM, SCOPE, until } from './support.js';

const HOUR_MS = 3_600_000;
const HEARD = { room: ROOM, heardBy: ['luna'] };
let worker: Awaited<ReturnType<typeof compileWorker>>;
beforeAll(async () => {
  worker = await compileWorker();
});
afterAll(() => worker.remove());

/** While a thread has the database open, its log is there. */
const runs = (file: string) => existsSync(`${file}-wal`);

async function indexedFile() {
  const file = join(await newFolder(), 'recall.db');
  const feed = memoryFeed();
  const files = memoryFiles();
  feed.say({ ...HEARD, text: 'the heron nests by the weir' });
  files.put(SCOPE, 'luna/MEMORY.md', '- Ann keeps bees\n');
  const { recall } = await begin(worker.entry, { feed, files, file });
  await until(() => recall.status().indexed === 2, 'all to be indexed');
  await recall.stop();
  return { file, feed, files };
}

describe('the thread is not started', () => {
  it('where nothing was ever said', async () => {
    const { file } = await begin(worker.entry, { laterMs: HOUR_MS });
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(existsSync(file)).toBe(false);
  });

  it('by a start', async () => {
    const given = await indexedFile();
    const { file, warnings } = await begin(worker.entry, { ...given, laterMs: HOUR_MS });
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(runs(file)).toBe(false);
    expect(warnings).toEqual([]);
  });

  it('by a few messages and a changed file, which the next search finds all the same', async () => {
    const given = await indexedFile();
    given.feed.say({ ...HEARD, text: 'a kingfisher was seen' });
    given.files.put(SCOPE, 'luna/MEMORY.md', '- Ann keeps geese\n');
    const { recall, feed, file, find } = await begin(worker.entry, { ...given, laterMs: HOUR_MS });
    feed.say({ ...HEARD, text: 'a cormorant was seen' });
    recall.heard(ROOM);
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(runs(file)).toBe(false);
    const found = await find('kingfisher cormorant geese');
    expect(found).toContain('a kingfisher was seen');
    expect(found).toContain('a cormorant was seen');
    expect(found.join()).toContain('Ann keeps geese');
  });
});

describe('the thread is started', () => {
  it('by the first search, which is answered', async () => {
    const given = await indexedFile();
    const { find, file } = await begin(worker.entry, { ...given, laterMs: HOUR_MS });
    expect(await find('heron')).toEqual(['the heron nests by the weir']);
    expect(runs(file)).toBe(true);
  });

  it('by much that is heard', async () => {
    const feed = memoryFeed();
    const { recall } = await begin(worker.entry, { feed, laterMs: HOUR_MS, threadIdleMs: 20 });
    for (let n = 0; n < 300; n++) {
      feed.say({ ...HEARD, text: `seal fact ${n}` });
      recall.heard(ROOM);
    }
    await until(() => recall.status().indexed === 300, 'what was heard to be indexed');
  });

  it('after a while by a single message', async () => {
    const { recall, feed } = await begin(worker.entry, { laterMs: 50 });
    feed.say({ ...HEARD, text: 'a single heron' });
    recall.heard(ROOM);
    await until(() => recall.status().indexed === 1, 'it to be indexed');
  });
});

describe('an idle thread', () => {
  it('ends, and is started again by what comes next, also in the midst of its ending', async () => {
    const given = await indexedFile();
    const started = await begin(worker.entry, { ...given, laterMs: HOUR_MS, threadIdleMs: 20 });
    const { find, feed, file, recall, warnings } = started;
    for (let n = 0; n < 5; n++) {
      feed.say({ ...HEARD, text: `walrus number${n}` });
      recall.heard(ROOM);
      expect(await find(`walrus number${n}`)).toContain(`walrus number${n}`);
      await until(() => !runs(file), 'the thread to end');
    }
    for (let n = 0; n < 30; n++) {
      expect(await find('heron')).toContain('the heron nests by the weir');
      await new Promise((resolve) => setTimeout(resolve, 15 + (n % 10)));
    }
    expect(warnings).toEqual([]);
  });

  it('does not miss that its file was deleted', async () => {
    const given = await indexedFile();
    const started = await begin(worker.entry, { ...given, laterMs: HOUR_MS, threadIdleMs: 20 });
    const { find, file, recall } = started;
    await find('heron');
    await until(() => !runs(file), 'the thread to end');
    await rm(file);
    await find('heron');
    await until(() => recall.status().waiting === 0, 'the index to be made anew');
    expect(await find('heron')).toEqual(['the heron nests by the weir']);
    expect((await recall.search(SCOPE, { text: 'bees', limit: 1, now: NOW })).hits).toHaveLength(1);
  });
});
