/** The pure parts: texts cut and batched, answers and jobs read, vectors made comparable. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cutAt, estimateTokens } from '../../src/core/cut.js';
import { asVector, fitting, inBatches, MOST_TOKENS, toUnit } from '../../src/embedding/embedder.js';
import { readJob, readReply, SERVER_FAILS, writeJob, writeReply } from '../../src/embedding/redis.js';
import { placeOf, readAnswer } from '../../src/embedding/server.js';

const anyText = fc.string({ unit: 'binary', maxLength: 200 });
const replier = { worker: 'w', model: 'm' };

describe('texts', () => {
  it('fit, are well formed, and are cut as little as needed', () => {
    fc.assert(
      fc.property(anyText, fc.integer({ min: 1, max: 900 }), (piece, times) => {
        const text = piece.repeat(times);
        const cut = fitting(text);
        expect(estimateTokens(cut)).toBeLessThanOrEqual(MOST_TOKENS);
        expect(/\p{Surrogate}/u.test(cut)).toBe(false);
        const whole = text.replace(/\p{Surrogate}/gu, '\ufffd');
        expect(whole.startsWith(cut)).toBe(true);
        if (estimateTokens(whole) <= MOST_TOKENS) expect(cut).toBe(whole);
        else expect(estimateTokens(whole.slice(0, cut.length + 8))).toBeGreaterThan(MOST_TOKENS - 1);
      }),
      { numRuns: 60 },
    );
  });

  it('stay well formed when the server refuses them as too long and they are cut in half', () => {
    expect(cutAt('😀😀😀', 3)).toBe('😀');
    expect(cutAt('abcd', 2)).toBe('ab');
  });

  it('stand in batches, all of them, in order', () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 40_000 }), { maxLength: 40 });
    fc.assert(
      fc.property(sizes, fc.integer({ min: 1, max: 10 }), (lengths, most) => {
        const texts = lengths.map((length) => 'x'.repeat(length));
        const batches = inBatches(texts, (text) => text, most);
        expect(batches.flat()).toEqual(texts);
        for (const batch of batches) {
          expect(batch.length).toBeLessThanOrEqual(most);
          const tokens = batch.reduce((sum, text) => sum + Math.min(estimateTokens(text), MOST_TOKENS), 0);
          expect(tokens).toBeLessThanOrEqual(16_000);
        }
      }),
      { numRuns: 50 },
    );
  });
});

describe('vectors', () => {
  it('have length 1, whatever their size', () => {
    const number = fc.double({ noNaN: true, noDefaultInfinity: true });
    fc.assert(
      fc.property(fc.array(number, { minLength: 1, maxLength: 50 }), (numbers) => {
        const vector = asVector(numbers);
        if (vector === null) expect(numbers.every((each) => each === 0)).toBe(true);
        else expect(Math.hypot(...toUnit(vector))).toBeCloseTo(1, 5);
      }),
    );
  });

  it.each([
    [[]],
    [[1, null]],
    [[1, '2']],
    [[Number.NaN]],
    [[Infinity]],
    [[0, -0]],
    ['AAAA'],
    [null],
    [{ 0: 1 }],
  ])('are not made of %j', (value) => expect(asVector(value)).toBeNull());
});

describe('an answer', () => {
  const headersOf = (retryAfter: string | null) => (retryAfter === null ? {} : { 'retry-after': retryAfter });
  const read = (status: number, text: string, retryAfter: string | null = null) =>
    readAnswer({ status, text, headers: headersOf(retryAfter) }, 1, Date.UTC(2026, 0, 1));

  it.each([
    [429, '{"error":{"message":"slow down"}}', '7', { kind: 'busy', waitMs: 7000, words: '429: slow down' }],
    [503, 'overloaded', 'Thu, 01 Jan 2026 00:00:05 GMT', { kind: 'busy', waitMs: 5000 }],
    [503, '', 'soon', { kind: 'busy', waitMs: null, words: '503: no reason given' }],
    [413, '{"error":"batch too big","error_type":"Validation"}', null, { kind: 'refused', tooLong: true }],
    [
      400,
      '{"error":{"message":"maximum context length is 8192 tokens"}}',
      null,
      { kind: 'refused', tooLong: true },
    ],
    [
      400,
      '{"error":"the input length exceeds the context length"}',
      null,
      { kind: 'refused', tooLong: true },
    ],
    [400, '{"detail":"no"}', null, { kind: 'refused', tooLong: false, transient: false, words: '400: no' }],
    [500, 'json: unsupported value: NaN', null, { kind: 'refused', transient: true }],
    [401, '{"error":"no key"}', null, { kind: 'broken', words: '401: no key', lasting: true }],
    [404, '<html><body>Not <b>here</b></body></html>', null, { kind: 'broken', words: '404: Not here' }],
    [200, '{"data":[{"embedding":[1,NaN]}]}', null, { kind: 'vectors', vectors: [null] }],
    [200, '{"data":[{"embedding":[1,2]}]}', null, { kind: 'vectors', vectors: [[1, 2]] }],
    [200, '{"data":[]}', null, { kind: 'broken' }],
    [200, 'NaN and so on', null, { kind: 'broken' }],
  ])('%i %s', (status, text, retryAfter, expected) => {
    expect(read(status, text, retryAfter)).toMatchObject(expected);
  });

  it('never throws', () => {
    fc.assert(
      fc.property(fc.integer({ min: 100, max: 599 }), fc.json(), (status, text) => {
        read(status, text);
      }),
    );
  });
});

describe('the protocol', () => {
  it('reads the jobs it writes', () => {
    fc.assert(
      fc.property(anyText, (content) => {
        const job = readJob(writeJob({ taskId: 't', content, replyTo: 'r' }));
        const text = content.trim() === '' ? null : content;
        expect(job).toEqual({ taskId: 't', type: 'embed', content: text, replyTo: 'r' });
      }),
    );
  });

  it('reads the replies it writes', () => {
    expect(readReply(writeReply('t', { vector: [1, 2] }, replier))).toEqual({
      kind: 'vector',
      taskId: 't',
      vector: [1, 2],
      model: 'm',
    });
    expect(readReply(writeReply('t', { error: 'no' }, replier))).toEqual({
      ...{ kind: 'error', taskId: 't', words: 'no', isServers: false },
    });
    const failing = writeReply('t', { error: `${SERVER_FAILS}: 401` }, replier);
    expect(readReply(failing)).toMatchObject({ words: 'Not embedded just now: 401', isServers: true });
  });

  it.each([
    ['{"task_id":"t","status":"success","content":{"vector":[]}}', 'error'],
    ['{"task_id":"t","status":"success","content":null}', 'error'],
    ['{"task_id":"t","status":"success","content":{"vector":[1]}}', 'vector'],
    ['{"task_id":"t"}', 'error'],
  ])('reads %s as %s', (text, kind) => {
    expect(readReply(text)?.kind).toBe(kind);
  });

  it('never throws at what it finds in a list', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
        readJob(text);
        readReply(text);
      }),
    );
  });
});

it('an address is shown without what may be secret', () => {
  expect(placeOf('redis://someone:hidden@host:6379/2?x=hidden')).toBe('redis://host:6379/2');
  expect(placeOf('nonsense')).toBe('an address that cannot be read');
});
