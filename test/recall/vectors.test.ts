import Database from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Fault } from '../../src/core/errors.js';
import type { Embedder } from '../../src/core/recall.js';
import { memoryFeed } from './memory-feed.js';
import { begin, compileWorker, NOW, newFolder, ROOM, SCOPE, until } from './support.js';

let worker: Awaited<ReturnType<typeof compileWorker>>;
beforeAll(async () => {
  worker = await compileWorker();
});
afterAll(() => worker.remove());

const MEANINGS = ['cat kitten feline', 'boat ship vessel', 'bread loaf baguette', 'rain drizzle downpour'];

/** Knows what a few words have in common; everything else lies apart by chance. */
function embedder(
  more: Partial<Embedder> & { size?: number } = {},
): Embedder & { texts: string[]; failing: boolean; slow: boolean } {
  const size = more.size ?? 64;
  const self = {
    model: 'meanings',
    texts: [] as string[],
    failing: false,
    slow: false,
    dimensions: () => size,
    state: (): ReturnType<Embedder['state']> =>
      self.failing ? { kind: 'failing', since: 1, reason: 'it is off' } : { kind: 'ok' },
    close: async () => {},
    async embed(texts: string[], { signal }: { signal: AbortSignal }): Promise<(Float32Array | null)[]> {
      if (self.failing) throw new Fault('embedding_unavailable', 'it is off');
      if (self.slow)
        await new Promise((_, reject) =>
          signal.addEventListener('abort', () => reject(new Error('late')), { once: true }),
        );
      self.texts.push(...texts);
      return texts.map((text) => vectorOf(text, size));
    },
    ...more,
  };
  return self;
}

function vectorOf(text: string, size: number): Float32Array {
  const vector = new Float32Array(size);
  let seed = [...text].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) >>> 0, 7);
  for (let n = MEANINGS.length; n < size; n++) {
    seed = (seed * 1_103_515_245 + 12_345) >>> 0;
    vector[n] = (seed / 2 ** 32 - 0.5) / 4;
  }
  MEANINGS.forEach((words, n) => {
    if (words.split(' ').some((word) => text.includes(word))) vector[n] = 1;
  });
  const length = Math.hypot(...vector);
  return vector.map((value) => value / length);
}

function told(count = 60) {
  const feed = memoryFeed();
  for (let n = 0; n < count; n++)
    feed.say({ room: ROOM, heardBy: ['luna'], text: `Nothing of note on day ${n}`, at: n * 1e9 });
  feed.say({ room: ROOM, heardBy: ['luna'], text: 'The kitten sleeps on the stove', at: 1e12 });
  feed.say({ room: 'telegram_1', heardBy: ['luna'], text: 'a kitten of another chat', at: 1e12 });
  return feed;
}

async function withVectors(given: Embedder, feed = told(), file?: string) {
  const bench = await begin(worker.entry, { feed, embedder: given, ...(file === undefined ? {} : { file }) });
  await until(
    () => bench.recall.status().indexed > 0 && bench.recall.status().vectorsWaiting === 0,
    'all vectors',
  );
  const ask = (text: string) => bench.recall.search(SCOPE, { text, limit: 5, now: NOW });
  return { ...bench, ask };
}

/** Gaussian, so that the furthest of many stand out by chance. */
function noiseOf(text: string): Float32Array {
  let state = [...text].reduce((sum, letter) => Math.imul(sum ^ letter.charCodeAt(0), 16777619), 2166136261);
  const random = () => {
    state = (Math.imul(state ^ (state >>> 15), 2246822507) + 0x9e3779b9) | 0;
    return (state >>> 0) / 2 ** 32;
  };
  const vector = Float32Array.from({ length: 64 }, () => random() + random() + random() - 1.5);
  const length = Math.hypot(...vector);
  return vector.map((value) => value / length);
}

describe('vectors', () => {
  it('are kept in a byte a number', async () => {
    const { file, recall } = await withVectors(embedder());
    await recall.stop();
    const db = new Database(file, { readonly: true });
    const lengths = db.prepare('SELECT DISTINCT length(value) AS bytes FROM vector').all();
    db.close();
    expect(lengths).toEqual([{ bytes: 64 }]);
  });

  it('of the former model answer until the new ones are there, as long as the server has it', async () => {
    const file = `${await newFolder()}/recall.db`;
    const { recall } = await withVectors(embedder(), told(), file);
    await recall.stop();
    let isReady = false;
    const asked: string[] = [];
    const second = embedder({
      model: 'other',
      size: 32,
      embed: async (texts, { purpose }) => {
        if (purpose === 'document' && !isReady) throw new Fault('embedding_unavailable', 'not yet');
        return texts.map((text) => vectorOf(text, 32));
      },
      embedAsBefore: async (model, text) => {
        asked.push(model);
        return vectorOf(text, 64);
      },
    });
    const bench = await begin(worker.entry, { feed: told(), embedder: second, file });
    const ask = () => bench.recall.search(SCOPE, { text: 'feline', limit: 3, now: NOW });
    await until(() => bench.recall.status().vectorsWaiting === 62, 'the count of what waits');
    const before = await ask();
    expect([before.by, before.hits[0]?.text]).toEqual(['both', 'The kitten sleeps on the stove']);
    expect(asked).toContain('meanings');
    isReady = true;
    await until(() => bench.recall.status().vectorsWaiting === 0, 'the new vectors');
    asked.length = 0;
    const after = await ask();
    expect([after.by, after.hits[0]?.text, asked]).toEqual(['both', 'The kitten sleeps on the stove', []]);
  });

  it('that mean nothing make nothing relevant, however many there are', async () => {
    const feed = memoryFeed();
    for (let n = 0; n < 5_000; n++)
      feed.say({ room: ROOM, heardBy: ['luna'], text: `Note ${n}`, at: n * 1e8 });
    const noise = embedder({ embed: async (texts) => texts.map((text) => noiseOf(text)) });
    const { ask } = await withVectors(noise, feed);
    for (const text of [
      'good evening',
      'shall we cook spaghetti',
      'lovely weather',
      'ciao bella',
      'so tired',
    ]) {
      const { by, hits } = await ask(text);
      expect(by).toBe('both');
      expect(Math.max(0, ...hits.map(({ relevance }) => relevance))).toBeLessThan(0.2);
    }
  });

  it('find by meaning what no word finds, within the scope alone', async () => {
    const { ask } = await withVectors(embedder());
    const { hits, by } = await ask('what about my feline');
    expect(by).toBe('both');
    expect(hits[0]?.text).toBe('The kitten sleeps on the stove');
    expect(hits[0]?.relevance).toBeGreaterThan(0.2);
    expect(hits.map(({ text }) => text)).not.toContain('a kitten of another chat');
  });

  it('of what is said later are made without being asked for', async () => {
    const { feed, indexed, recall, ask } = await withVectors(embedder());
    feed.say({ room: ROOM, heardBy: ['luna'], text: 'A loaf in the oven', at: 2e12 });
    await indexed();
    await until(
      () => recall.status().indexed === 63 && recall.status().vectorsWaiting === 0,
      'the new vector',
    );
    expect((await ask('baguette'))?.hits[0]?.text).toBe('A loaf in the oven');
  });

  it('are not waited for while the embedder fails, and made up for when it is back', async () => {
    const given = embedder();
    given.failing = true;
    const { recall, find } = await begin(worker.entry, { feed: told(), embedder: given });
    expect(await find('kitten')).toContain('The kitten sleeps on the stove');
    expect((await recall.search(SCOPE, { text: 'kitten', limit: 1, now: NOW })).by).toBe('keywords');
    await until(() => recall.status().vectorsWaiting === 62, 'the count of what waits');
    expect(recall.status().vectors).toEqual({ state: 'failing', since: 1, reason: 'it is off' });
    given.failing = false;
    await until(() => recall.status().vectorsWaiting === 0, 'vectors to be made up for');
    expect((await find('feline'))[0]).toBe('The kitten sleeps on the stove');
  });

  it('are waited for a moment only', async () => {
    const given = embedder();
    const { ask } = await withVectors(given);
    given.slow = true;
    const { hits, by } = await ask('kitten');
    expect([by, hits[0]?.text]).toEqual(['keywords', 'The kitten sleeps on the stove']);
  });

  it.each([
    ['NaN', (size: number) => new Float32Array(size).fill(Number.NaN)],
    ['nothing', () => new Float32Array(0)],
    ['null', () => null],
    ['another length', () => new Float32Array(7).fill(0.3)],
  ])('that are %s are passed over', async (_, bad) => {
    const good = embedder();
    const given = embedder({
      embed: async (texts, ask) => {
        const vectors = await good.embed(texts, ask);
        return vectors.map((vector, n) => (n % 20 === 3 && ask.purpose === 'document' ? bad(64) : vector));
      },
    });
    const { ask } = await withVectors(given);
    expect((await ask('kitten')).hits[0]?.text).toBe('The kitten sleeps on the stove');
    const query = embedder({
      embed: async (texts, ask) => (ask.purpose === 'query' ? [bad(64)] : good.embed(texts, ask)),
    });
    const other = await withVectors(query);
    const { by, hits } = await other.ask('kitten');
    expect([by, hits[0]?.text]).toEqual(['keywords', 'The kitten sleeps on the stove']);
  });

  it('of another model are made beside the old ones, and never compared with them', async () => {
    const file = `${await newFolder()}/recall.db`;
    const first = embedder();
    const { recall } = await withVectors(first, told(), file);
    await recall.stop();
    const second = embedder({ model: 'other', size: 32 });
    second.failing = true;
    const bench = await begin(worker.entry, { feed: told(), embedder: second, file });
    expect((await bench.recall.search(SCOPE, { text: 'feline', limit: 3, now: NOW })).by).toBe('keywords');
    second.failing = false;
    await until(
      () => bench.recall.status().indexed === 62 && bench.recall.status().vectorsWaiting === 0,
      'the new vectors',
    );
    const { by, hits } = await bench.recall.search(SCOPE, { text: 'feline', limit: 3, now: NOW });
    expect([by, hits[0]?.text]).toEqual(['both', 'The kitten sleeps on the stove']);
    await bench.recall.stop();
    const back = await withVectors(embedder(), told(), file);
    expect((await back.ask('feline')).hits[0]?.text).toBe('The kitten sleeps on the stove');
  });

  it('that tell nothing apart change nothing', async () => {
    const same = embedder({ embed: async (texts) => texts.map(() => new Float32Array(64).fill(0.125)) });
    const { ask, recall, feed } = await withVectors(same);
    const both = await ask('kitten stove day');
    await recall.stop();
    const { recall: plain } = await begin(worker.entry, { feed });
    const alone = await plain.search(SCOPE, { text: 'kitten stove day', limit: 5, now: NOW });
    expect(both.hits).toEqual(alone.hits);
  });

  it('are of the beginning of a long text, and of none where there is none', async () => {
    const feed = told();
    feed.say({ room: ROOM, heardBy: ['luna'], text: 'x'.repeat(100_000), at: 1e12 });
    feed.say({ room: ROOM, heardBy: ['luna'], text: '  ', at: 1e12 });
    const given = embedder();
    await withVectors(given, feed);
    expect(Math.max(...given.texts.map((text) => text.length))).toBeLessThanOrEqual(2_000);
  });
});
