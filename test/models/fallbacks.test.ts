import { afterEach, describe, expect, test } from 'vitest';
import { withFallbacks } from '../../src/models/retries.js';
import type { FakeModelOptions } from '../fakes/model.js';
import { answered, ask, type Bench, fault, keptLog, openBench, outcome } from './helpers.js';

let open: Bench[] = [];
afterEach(async () => {
  await Promise.all(open.map((bench) => bench.fake.close()));
  open = [];
});

/** One server for each reply; each asks only once. */
async function chain(...replies: FakeModelOptions['reply'][]) {
  open = await Promise.all(replies.map((reply) => openBench(reply, { maxAttempts: 1 })));
  const [first, ...others] = open.map((bench) => bench.client);
  if (first === undefined) throw new Error('a chain has at least one');
  const log = keptLog();
  return {
    client: withFallbacks(first, others, log),
    log,
    counts: () => open.map((bench) => bench.fake.count()),
  };
}

describe('fallbacks', () => {
  test('are not asked while the first answers', async () => {
    const { client, counts } = await chain('one', 'two');
    expect((await answered(client, ask('?'))).text).toBe('one');
    expect(counts()).toEqual([1, 0]);
  });

  test('are asked in order, with their own model and not the persona’s', async () => {
    const { client, counts, log } = await chain({ status: 500 }, { status: 401 }, 'three');
    expect((await answered(client, ask('?', { model: 'large', temperature: 1 }))).text).toBe('three');
    expect(counts()).toEqual([1, 1, 1]);
    expect(open.map((bench) => bench.fake.requests[0]?.body.model)).toEqual(['large', 'small', 'small']);
    expect(open[2]?.fake.requests[0]?.body.temperature).toBe(1);
    expect(log.lines).toHaveLength(2);
  });

  test('all failing: the first one’s kind of fault, the words of all', async () => {
    const { client } = await chain(
      { status: 400, body: { error: { message: 'prompt is too long' } } },
      { status: 401, body: { error: { message: 'bad key' } } },
    );
    const found = await fault(client, ask('?'));
    expect(found.code).toBe('context_too_long');
    expect(found.message).toContain('prompt is too long');
    expect(found.message).toContain('bad key');
  });

  test('all failing, one of them for the length: a shorter request may do, wherever it stands', async () => {
    const { client } = await chain(
      { status: 503 },
      { status: 400, body: { error: { message: 'prompt is too long' } } },
    );
    expect((await fault(client, ask('?'))).code).toBe('context_too_long');
  });

  test('none is asked after a stop', async () => {
    const { client, counts } = await chain({ stall: 'headers' }, 'two');
    const stop = new AbortController();
    const event = outcome(client, ask('?'), stop.signal);
    await open[0]?.fake.received(1);
    stop.abort();
    expect((await event).kind).toBe('failed');
    expect(counts()).toEqual([1, 0]);
  });

  test('what an owner should hear is told, whoever failed or answered', async () => {
    const { client } = await chain('one');
    const notice = (key: string) => ({ key, text: 'its window is small' });
    const failing = (key: string) => ({
      ...client,
      async *stream() {
        const failed = await fault(client, ask('?'), AbortSignal.abort());
        yield { kind: 'failed' as const, fault: failed, notices: [notice(key)] };
      },
    });
    const ends = [client, failing('b')].map((last) =>
      outcome(withFallbacks(failing('a'), [last], keptLog()), ask('?')),
    );
    const [done, failed] = await Promise.all(ends);
    expect(done).toMatchObject({ kind: 'done', notices: [notice('a')] });
    expect(failed).toMatchObject({ kind: 'failed', notices: [notice('a'), notice('b')] });
  });

  test('what was told by one that then failed is void', async () => {
    const { client } = await chain('one');
    const told = {
      ...client,
      async *stream() {
        yield { kind: 'text' as const, delta: 'half' };
        yield { kind: 'failed' as const, fault: await fault(client, ask('?'), AbortSignal.abort()) };
      },
    };
    const events = [];
    const both = withFallbacks(told, [client], keptLog());
    for await (const event of both.stream(ask('?'), new AbortController().signal)) events.push(event.kind);
    expect(events).toEqual(['text', 'restart', 'text', 'done']);
  });

  test('the check fails with the first, and warns of the others', async () => {
    const { client } = await chain('ready', { status: 401, body: { error: { message: 'bad key' } } });
    const found = await client.check(new AbortController().signal);
    expect(found.warnings).toHaveLength(1);
    expect(found.warnings[0]).toMatch(/^fallback 1 failed: .*bad key/);
  });
});
