/** How a model wants its texts: prefixes, lengths, and limits as real servers have them. */

import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { nameOf, readName, recipeOf } from '../../src/embedding/embedder.js';
import { createHttpEmbedder } from '../../src/embedding/server.js';
import { type FakeEmbeddings, startFakeEmbeddings } from '../fakes/embeddings.js';
import { straight } from '../harness/straight.js';
import { keptLog } from './support.js';

const signal = new AbortController().signal;
const QUERY = { purpose: 'query' as const, signal };
const DOCUMENT = { purpose: 'document' as const, signal };
const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function begin(
  fake: Parameters<typeof startFakeEmbeddings>[0],
  given: Partial<Parameters<typeof createHttpEmbedder>[0]> = {},
) {
  const server: FakeEmbeddings = await startFakeEmbeddings({ length: 32, ...fake });
  const log = keptLog();
  const embedder = createHttpEmbedder({
    ...{ baseUrl: server.url, apiKey: null, model: 'nomic-ai/nomic-embed-text-v1.5', timeoutSeconds: 2 },
    ...{ outward: straight, clock: systemClock, log, ...given },
  });
  closing.push(
    () => embedder.close(),
    () => server.close(),
  );
  return { server, embedder, log };
}

function alike(a: Float32Array | null | undefined, b: Float32Array | null | undefined): number {
  return [...(a ?? [])].reduce((sum, value, n) => sum + value * (b?.[n] ?? 0), 0);
}

describe('a question and the text that it asks for', () => {
  it.each([
    ['nomic-ai/nomic-embed-text-v1.5', { query: 'search_query: ', document: 'search_document: ' }],
    ['intfloat/multilingual-e5-base', { query: 'query: ', document: 'passage: ' }],
    [
      'BAAI/bge-small-en-v1.5',
      { query: 'Represent this sentence for searching relevant passages: ', document: '' },
    ],
    [
      'google/embeddinggemma-300m',
      { query: 'task: search result | query: ', document: 'title: none | text: ' },
    ],
    ['BAAI/bge-m3', { query: '', document: '' }],
  ])('are near each other with the prefixes of %s', async (model, prefixes) => {
    const { embedder } = await begin({ prefixes }, { model });
    const [question] = await embedder.embed(['where is the key'], QUERY);
    const [text, other] = await embedder.embed(['where is the key', 'a boat'], DOCUMENT);
    expect(alike(question, text)).toBeCloseTo(1, 5);
    expect(alike(question, other)).toBeLessThan(0.9);
  });

  it('have the instruction of Qwen3-Embedding before the question alone', async () => {
    const { embedder, server } = await begin({}, { model: 'Qwen/Qwen3-Embedding-0.6B' });
    await embedder.embed(['where is the key'], QUERY);
    await embedder.embed(['under the mat'], DOCUMENT);
    expect(server.requests[0]?.body.input[0]).toMatch(/^Instruct: .+\nQuery:where is the key$/);
    expect(server.requests[1]?.body.input).toEqual(['under the mat']);
  });

  it('have the prefixes of the configuration, if there are any', async () => {
    const { embedder, server } = await begin({}, { queryPrefix: 'q> ', documentPrefix: '' });
    await embedder.embed(['one'], QUERY);
    await embedder.embed(['two'], DOCUMENT);
    expect(server.requests.map(({ body }) => body.input[0])).toEqual(['q> one', 'two']);
  });
});

describe('embeddings.dimensions', () => {
  it.each(['honoured', 'refused', 'ignored'] as const)(
    'that are %s give vectors of that length',
    async (dimensions) => {
      const { embedder, server } = await begin({ dimensions }, { dimensions: 8 });
      const [vector] = await embedder.embed(['one'], DOCUMENT);
      expect(vector).toHaveLength(8);
      expect(Math.hypot(...(vector ?? []))).toBeCloseTo(1, 5);
      expect(embedder.dimensions()).toBe(8);
      expect(server.requests[0]?.body.dimensions).toBe(8);
      await embedder.embed(['two'], DOCUMENT);
      expect(server.requests.at(-1)?.body.dimensions).toBe(dimensions === 'refused' ? undefined : 8);
    },
  );

  it('above what the model has are a fault, and not another model’s vectors', async () => {
    const { embedder } = await begin({}, { dimensions: 64 });
    await expect(embedder.embed(['one'], DOCUMENT)).rejects.toThrow(/32 numbers.*dimensions asks for 64/);
  });
});

describe('a name', () => {
  it('is another for another model, prefix or length, and says how its vectors were made', () => {
    const names = [
      { model: 'plain' },
      { model: 'plain', dimensions: 8 },
      { model: 'plain', queryPrefix: 'q: ' },
      { model: 'nomic-embed-text' },
      { model: 'nomic-embed-text', queryPrefix: '', documentPrefix: '' },
    ].map((given) => nameOf(recipeOf(given)));
    expect(new Set(names).size).toBe(names.length);
    expect(names.map((name) => nameOf(readName(name) ?? recipeOf({ model: 'none' })))).toEqual(names);
  });
});

describe('a former model', () => {
  const before = nameOf(recipeOf({ model: 'old' }));

  it('still answers where the server has it', async () => {
    const { embedder } = await begin({ models: ['old', 'new'] }, { model: 'new' });
    const { embedder: old } = await begin({ models: ['old'] }, { model: 'old' });
    const [was] = await old.embed(['one'], QUERY);
    expect(alike(await embedder.embedAsBefore?.(before, 'one', signal), was)).toBeCloseTo(1, 5);
  });

  it.each([
    ['the server no longer has it', { models: ['new'] }],
    ['the server has one model, whatever is asked for', { only: 'new' }],
  ])('does not where %s, and that is no failure', async (_, fake) => {
    const { embedder } = await begin(fake, { model: 'new' });
    for (let n = 0; n < 3; n++) expect(await embedder.embedAsBefore?.(before, 'one', signal)).toBeNull();
    expect(embedder.state()).toEqual({ kind: 'ok' });
  });
});

describe('limits as servers have them', () => {
  it('of text-embeddings-inference are learnt and kept to', async () => {
    const like = { tei: { tokens: 100, texts: 32, atOnce: 4 } };
    const { embedder, server } = await begin({ like }, { model: 'plain' });
    const many = Array.from({ length: 64 }, (_, n) => `text number ${n}`);
    expect((await embedder.embed(many, DOCUMENT)).every((vector) => vector !== null)).toBe(true);
    const requests = server.requests.length;
    await embedder.embed(many, DOCUMENT);
    expect(server.requests.length - requests).toBe(2);
    const [long] = await embedder.embed(['word '.repeat(300)], DOCUMENT);
    expect(long).toHaveLength(32);
  });

  it('of Ollama are kept to for dense text as well', async () => {
    const { embedder } = await begin({ like: { ollama: { tokens: 2_048 } } }, { model: 'plain' });
    const [vector] = await embedder.embed(['a: 1, b: {2}; '.repeat(900)], DOCUMENT);
    expect(vector).toHaveLength(32);
  });
});
