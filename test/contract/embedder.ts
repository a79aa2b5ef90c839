/**
 * What every embedder must do, told through its port and an embedding server behind it: one suite, run by every
 * backend. `open` gives an embedder whose every time-out is about a second.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Fault } from '../../src/core/errors.js';
import type { Embedder } from '../../src/core/recall.js';
import { type FakeEmbeddings, startFakeEmbeddings, vectorFor } from '../fakes/embeddings.js';

export interface OpenedEmbedder {
  embedder: Embedder;
  /** Lines of its log. */
  lines: string[];
  close(): Promise<void>;
}

type Describe = (name: string, body: () => void) => void;

export function embedderContract(
  name: string,
  describeIt: Describe,
  open: (server: FakeEmbeddings) => Promise<OpenedEmbedder>,
): void {
  describeIt(`an embedder: ${name}`, () => {
    let server: FakeEmbeddings;
    let opened: OpenedEmbedder;
    const asking = (purpose: 'document' | 'query') => ({ purpose, signal: new AbortController().signal });
    const embed = (texts: string[]) => opened.embedder.embed(texts, asking('document'));
    const poison = (body: { input: string[] }) => body.input.some((text) => text.includes('poison'));

    beforeEach(async () => {
      server = await startFakeEmbeddings();
      opened = await open(server);
    });
    afterEach(async () => {
      await opened.close();
      await server.close();
    });

    describe('gives', () => {
      it('a unit vector for each text, in order', async () => {
        expect(opened.embedder.dimensions()).toBeNull();
        const texts = ['one', 'two', 'Wörter', '言葉がある', 'คำ', 'كلمات', '👩‍👩‍👧 \u0000 \ud800'];
        const vectors = await embed(texts);
        expect(vectors.map((vector) => vector?.length)).toEqual(texts.map(() => 8));
        for (const [n, text] of texts.slice(0, 6).entries()) expectVector(vectors[n], text);
        expect(opened.embedder.dimensions()).toBe(8);
        expect(opened.embedder.state()).toEqual({ kind: 'ok' });
      });

      it('the same for a query', async () => {
        const [vector] = await opened.embedder.embed(['where is my key?'], asking('query'));
        expectVector(vector, 'where is my key?');
      });

      it('hundreds at once, in batches', async () => {
        const texts = Array.from({ length: 300 }, (_, n) => `text ${n}`);
        const vectors = await embed(texts);
        for (const [n, text] of texts.entries()) expectVector(vectors[n], text);
        expect(Math.max(...server.requests.map(({ body }) => body.input.length))).toBeLessThanOrEqual(64);
        expect(server.requests.length).toBeLessThan(60);
      });

      it('several callers theirs', async () => {
        const calls = Array.from({ length: 20 }, (_, n) => [`a ${n}`, `b ${n}`, `c ${n}`]);
        const all = await Promise.all(calls.map(embed));
        for (const [n, texts] of calls.entries()) {
          for (const [m, text] of texts.entries()) expectVector(all[n]?.[m], text);
        }
      });

      it('what the server gives in another order', async () => {
        server.reply({ reversed: true });
        const vectors = await embed(['one', 'two', 'three']);
        for (const [n, text] of ['one', 'two', 'three'].entries()) expectVector(vectors[n], text);
      });

      it('null for what holds no text, without a request', async () => {
        expect(await embed(['', '  \n\t'])).toEqual([null, null]);
        expect(await embed([])).toEqual([]);
        expect(server.requests).toEqual([]);
        const [blank, vector] = await embed(['', 'words']);
        expect(blank).toBeNull();
        expectVector(vector, 'words');
      });

      it('a vector for the beginning of a long text', async () => {
        const long = 'word '.repeat(20_000);
        const wide = '長'.repeat(50_000);
        const vectors = await embed([long, wide]);
        expect(vectors.every((vector) => vector !== null)).toBe(true);
        const sent = server.requests.flatMap(({ body }) => body.input).sort((a, b) => a.length - b.length);
        expect(sent.map((text) => text.length)).toEqual([8_000, 32_000]);
        expect(long.startsWith(sent[1] ?? '?')).toBe(true);
      });
    });

    describe('asks', () => {
      it('for floats, by name', async () => {
        await embed(['words']);
        expect(server.requests[0]?.body).toEqual({
          model: 'test-embed',
          input: ['words'],
          encoding_format: 'float',
        });
        expect(server.requests[0]?.headers.authorization).toBe('Bearer key-not-for-anybody');
      });

      it('again, when told to come back', async () => {
        const busy = { status: 429, headers: { 'retry-after': '0' } };
        server.reply((_, n) => (n < 2 ? busy : {}));
        const [vector] = await embed(['words']);
        expectVector(vector, 'words');
        expect(server.requests.length).toBe(3);
      });
    });

    describe('leaves out', () => {
      for (const status of [400, 413, 422, 500]) {
        it(`one text that the server refuses with ${status}`, async () => {
          server.reply((body) => (poison(body) ? { status } : {}));
          const texts = [...Array.from({ length: 20 }, (_, n) => `text ${n}`), 'poison', 'last'];
          const vectors = await embed(texts);
          expect(vectors.map((vector) => vector !== null)).toEqual(texts.map((text) => text !== 'poison'));
          expectVector(vectors[21], 'last');
          expect(opened.embedder.state().kind).toBe('ok');
        });
      }

      for (const [what, odd] of Object.entries({
        'with NaN': [1, null, 1, 1, 1, 1, 1, 1],
        empty: [],
        'of another length': [1, 2, 3],
        'of nothing but zeros': [0, 0, 0, 0, 0, 0, 0, 0],
        'that is a string': 'AAAAAA==',
        missing: null,
      })) {
        it(`one whose vector is ${what}`, async () => {
          server.reply({ vectorOf: (text) => (text === 'odd' ? odd : undefined) });
          const [first, second, third] = await embed(['first', 'odd', 'third']);
          expectVector(first, 'first');
          expect(second).toBeNull();
          expectVector(third, 'third');
        });
      }

      it('only the refused one when it comes alone', async () => {
        server.reply((body) => (poison(body) ? { status: 400 } : {}));
        expect(await embed(['poison'])).toEqual([null]);
        const [vector] = await embed(['words']);
        expectVector(vector, 'words');
      });
    });

    describe('fails, and leaves no text out,', () => {
      it.each([400, 401, 404, 500, 503])('when the server answers everything with %i', async (status) => {
        server.reply({ status });
        const error = await embed(['one', 'two']).catch((thrown: unknown) => thrown);
        expectUnavailable(error);
      });

      it('when the server says nothing, breaks off, or talks nonsense', async () => {
        const scripts = [
          { stall: 'hang' },
          { stall: 'drop' },
          { body: '<html>hello</html>' },
          { body: { data: [] } },
          { body: { data: [{ index: 7, embedding: [1] }] } },
        ] as const;
        for (const script of scripts) {
          server.reply(script);
          const again = await open(server);
          expectUnavailable(
            await again.embedder.embed(['one'], asking('query')).catch((thrown: unknown) => thrown),
          );
          await again.close();
        }
      });

      it('when the server runs another model than before', async () => {
        await embed(['one']);
        server.length(12);
        const error = await embed(['two']).catch((thrown: unknown) => thrown);
        expectUnavailable(error);
        expect(String(error)).toMatch(/12 numbers.*8 before.*embeddings\.model/);
      });

      it('at once when nobody waits any more', async () => {
        server.reply({ stall: 'hang' });
        const caller = new AbortController();
        const asked = opened.embedder.embed(['one'], { purpose: 'query', signal: caller.signal });
        await server.received(1);
        caller.abort();
        expectUnavailable(await asked.catch((thrown: unknown) => thrown));
        expect(opened.embedder.state().kind).toBe('ok');
      });

      it('after it was closed', async () => {
        await opened.embedder.close();
        expectUnavailable(await embed(['one']).catch((thrown: unknown) => thrown));
      });
    });

    it('says at once that it is down, and by itself that it works again', async () => {
      server.reply({ status: 503 });
      await expect(embed(['one'])).rejects.toThrow();
      await expect(embed(['one'])).rejects.toThrow();
      const state = opened.embedder.state();
      expect(state).toMatchObject({ kind: 'failing', since: expect.any(Number), reason: expect.any(String) });
      const begun = performance.now();
      expectUnavailable(await embed(['one']).catch((thrown: unknown) => thrown));
      expect(performance.now() - begun).toBeLessThan(50);

      server.reply({});
      await expect.poll(() => opened.embedder.state().kind, { timeout: 20_000 }).toBe('ok');
      expectVector((await embed(['one']))[0], 'one');
      const told = opened.lines.filter((line) => /embeddings failed|embeddings work again/.test(line));
      expect(told.length).toBe(2);
      expect(opened.lines.join('\n')).not.toContain('key-not-for-anybody');
    });
  });
}

export function expectVector(vector: Float32Array | null | undefined, text: string): void {
  const plain = vectorFor(text, 8);
  const length = Math.hypot(...plain);
  expect(vector).toBeInstanceOf(Float32Array);
  const expected = plain.map((number) => number / length);
  expect(Math.max(...expected.map((number, n) => Math.abs(number - (vector?.[n] ?? 9))))).toBeLessThan(1e-6);
}

export function expectUnavailable(error: unknown): void {
  expect(error).toBeInstanceOf(Fault);
  expect(error).toMatchObject({ code: 'embedding_unavailable' });
  expect(String(error)).not.toContain('key-not-for-anybody');
}
