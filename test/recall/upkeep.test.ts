/** The index is derived: whatever becomes of its file, what was heard is found again, and nothing else. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { memoryFeed, memoryFiles } from './memory-feed.js';
import {
  begin,
  compileWorker,
  NOW,
  newFolder,
  ROOM,
  remembered,
  SCOPE,
  sqliteOutside,
  until,
} from './support.js';

const Database = createRequire(import.meta.url)('better-sqlite3') as typeof import('better-sqlite3');
let worker: Awaited<ReturnType<typeof compileWorker>>;
beforeAll(async () => {
  worker = await compileWorker();
});
afterAll(() => worker.remove());

function told(messages = 300) {
  const feed = memoryFeed();
  for (let n = 0; n < messages; n++) feed.say({ room: ROOM, heardBy: ['luna'], text: `walrus fact ${n}` });
  feed.say({ room: ROOM, heardBy: ['luna'], text: 'the heron nests by the weir' });
  return feed;
}

async function indexedFile(feed = told()) {
  const file = join(await newFolder(), 'recall.db');
  const { recall } = await begin(worker.entry, { feed, file });
  await recall.stop();
  return { feed, file };
}

describe('the file of the index', () => {
  it('is used again by the next process', async () => {
    const { feed, file } = await indexedFile();
    const { find, recall, warnings } = await begin(worker.entry, { feed, file });
    expect((await find('heron'))[0]).toBe('the heron nests by the weir');
    expect(recall.status()).toMatchObject({ indexed: 301, waiting: 0, vectors: { state: 'off' } });
    expect(warnings).toEqual([]);
  });

  it.each([
    ['is not a database', (file: string) => writeFile(file, 'coterie '.repeat(10_000))],
    [
      'is cut off',
      async (file: string) => truncate(file, Math.floor((await stat(file)).size / 2 / 4096) * 4096),
    ],
    [
      'is overwritten in the middle',
      async (file: string) => {
        const bytes = await readFile(file);
        bytes.fill(0xff, 4096, bytes.length - 4096);
        await writeFile(file, bytes);
      },
    ],
    ['is from a newer version', async (file: string) => void (await version(file, 999))],
    ['is from an older version', async (file: string) => void (await version(file, -1))],
    ['has other tables', async (file: string) => void (await change(file, 'DROP TABLE chunk'))],
  ])('is made anew, and said so, when it %s', async (_, harm) => {
    const { feed, file } = await indexedFile();
    await harm(file);
    const { find, warnings, recall } = await begin(worker.entry, { feed, file });
    await until(() => recall.status().waiting === 0, 'the index to be made anew');
    await until(
      async () => (await find('heron'))[0] === 'the heron nests by the weir',
      'what was heard to be found',
    );
    await until(() => recall.status().indexed === 301, 'all to be indexed');
    expect(warnings.map(({ message }) => message)).toContain('the search index is being rebuilt');
  });

  it('is made anew when it is deleted under a running gateway', async () => {
    const { find, file, feed } = await begin(worker.entry, { feed: told() });
    for (const suffix of ['', '-wal', '-shm']) await rm(file + suffix, { force: true });
    feed.say({ room: ROOM, heardBy: ['luna'], text: 'unrelated' });
    await until(
      async () => (await find('heron'))[0] === 'the heron nests by the weir',
      'the heron to be found again',
    );
    expect(existsSync(file)).toBe(true);
  });

  it('cannot be written: searches answer with nothing, and the log says why', async () => {
    const folder = await newFolder();
    const { log, warnings } = remembered();
    const { createRecall } = await import('../../src/recall/recall.js');
    const { systemClock } = await import('../../src/core/clock.js');
    const { createZone } = await import('../../src/core/dates.js');
    const recall = createRecall({
      file: join(folder, 'no', 'such', 'folder', 'recall.db'),
      feed: told(3),
      files: memoryFiles(),
      embedder: null,
      clock: systemClock,
      zone: createZone('UTC'),
      log,
      worker: worker.entry,
    });
    recall.start();
    expect(await recall.search(SCOPE, { text: 'heron', limit: 3, now: NOW })).toEqual({
      hits: [],
      by: 'keywords',
    });
    expect(warnings.length).toBeGreaterThan(0);
    await recall.stop();
    expect(await recall.search(SCOPE, { text: 'heron', limit: 3, now: NOW })).toEqual({
      hits: [],
      by: 'keywords',
    });
  });

  it('forgets views that the store no longer has, and those of a store that was made anew', async () => {
    const { file } = await indexedFile();
    const other = memoryFeed(Date.UTC(2027, 0, 1));
    for (let n = 0; n < 5; n++) other.say({ room: ROOM, heardBy: ['luna'], text: `a new beginning ${n}` });
    const { find, recall } = await begin(worker.entry, { feed: other, file });
    expect(await find('heron walrus')).toEqual([]);
    expect(await find('beginning')).toHaveLength(5);
    expect(recall.status().indexed).toBe(5);
  });

  it('holds no word of what was forgotten', async () => {
    const feed = told();
    const { file, recall, indexed, find } = await begin(worker.entry, { feed });
    feed.say({ room: 'telegram_2', heardBy: ['luna'], text: 'a kingfisher elsewhere' });
    await indexed();
    const bytes = async () =>
      Buffer.concat(
        await Promise.all(['', '-wal'].map((end) => readFile(file + end).catch(() => Buffer.alloc(0)))),
      );
    feed.forget(SCOPE.chatId);
    await recall.forget(SCOPE.chatId);
    expect(await find('heron')).toEqual([]);
    await until(() => recall.status().waiting === 0, 'the rest to be indexed');
    expect(
      (
        await recall.search(
          { chatId: 'telegram_2', personaId: 'luna' },
          { text: 'kingfisher', limit: 1, now: NOW },
        )
      ).hits,
    ).toHaveLength(1);
    // The write-ahead file is folded in when the last one closes.
    await new Promise((resolve) => setTimeout(resolve, 200));
    await recall.stop();
    const left = (await bytes()).toString('latin1');
    expect(left).toContain('kingfi');
    expect(left).not.toContain('heron');
    expect(left).not.toContain('walru');
  });
});

describe('two processes', () => {
  it('index into one file, and each message once', async () => {
    const feed = told(2_000);
    const file = join(await newFolder(), 'recall.db');
    const [one, two] = await Promise.all([
      begin(worker.entry, { feed, file }),
      begin(worker.entry, { feed, file }),
    ]);
    feed.say({ room: ROOM, heardBy: ['luna'], text: 'a late cormorant' });
    await one.indexed();
    expect(await two.find('cormorant')).toContain('a late cormorant');
    await two.indexed();
    expect(one.recall.status().indexed).toBe(2_002);
    expect(await one.find('heron')).toContain('the heron nests by the weir');
    // Each remembers where the index stood when it wrote last, and the other has written since.
    for (const [n, process] of [one, two, one, two].entries()) {
      feed.say({ room: ROOM, heardBy: ['luna'], text: `a late gannet ${n}` });
      await process.indexed();
      expect(await process.find('gannet')).toContain(`a late gannet ${n}`);
    }
    expect(two.recall.status().indexed).toBe(2_006);
    expect(one.warnings).toEqual([]);
  });

  it('one of them killed in the middle of the build: the next goes on', async () => {
    const folder = dirname(fileURLToPath(worker.entry));
    const script = join(folder, 'killed.mjs');
    const here = (path: string) => JSON.stringify(fileURLToPath(new URL(path, import.meta.url)));
    await build({
      stdin: {
        contents: `
          import { createRecall } from ${here('../../src/recall/recall.ts')};
          import { systemClock } from ${here('../../src/core/clock.ts')};
          import { createZone } from ${here('../../src/core/dates.ts')};
          import { memoryFeed, memoryFiles } from ${here('./memory-feed.ts')};
          const feed = memoryFeed();
          for (let n = 0; n < 20_000; n++) feed.say({ room: 'terminal_local', heardBy: ['luna'], text: 'walrus fact ' + n });
          const files = memoryFiles();
          files.put({ chatId: 'terminal_local', personaId: 'luna' }, 'memory/2026-01-02.md', 'a line about seals\\n'.repeat(50_000));
          const log = { debug() {}, info() {}, warn() {}, error() {} };
          const recall = createRecall({ file: process.argv[2], feed, files, embedder: null, clock: systemClock,
            zone: createZone('UTC'), log, worker: new URL(process.argv[3]), laterMs: 0 });
          recall.start();
          setInterval(() => {}, 1000);`,
        resolveDir: folder,
        loader: 'ts',
      },
      outfile: script,
      bundle: true,
      format: 'esm',
      platform: 'node',
      plugins: [sqliteOutside],
    });
    const file = join(await newFolder(), 'recall.db');
    for (const after of [300, 700]) {
      const child = spawn(process.execPath, [script, file, worker.entry.href], { stdio: 'inherit' });
      await until(() => existsSync(file), 'the build to begin');
      await new Promise((resolve) => setTimeout(resolve, after));
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    const feed = memoryFeed();
    for (let n = 0; n < 20_000; n++) feed.say({ room: ROOM, heardBy: ['luna'], text: `walrus fact ${n}` });
    const { recall, find, warnings } = await begin(worker.entry, { feed, file });
    await until(() => recall.status().indexed === 20_000, 'the build to be finished');
    expect(await find('walrus fact 17171')).toContain('walrus fact 17171');
    expect(warnings).toEqual([]);
  });
});

async function version(file: string, number: number): Promise<void> {
  await change(file, `PRAGMA user_version = ${number}`);
}

/** Node 24 aborts when the garbage collector takes one. */
const held: unknown[] = [];

async function change(file: string, sql: string): Promise<void> {
  const db = new Database(file);
  held.push(db);
  db.exec(sql);
  db.close();
}
