import { afterEach, describe, expect, test } from 'vitest';
import type { FakeModelOptions } from '../fakes/model.js';
import { openai } from '../fakes/model-servers/openai.js';
import { type Bench, openBench } from './helpers.js';

let bench: Bench;
afterEach(async () => {
  await bench.fake.close();
});

async function warnings(reply: FakeModelOptions['reply'], options = {}) {
  bench = await openBench(reply, { maxAttempts: 1, ...options });
  return bench.client.check(new AbortController().signal);
}

describe('the check of doctor', () => {
  test('has nothing to say about a good server', async () => {
    const found = await warnings('ready');
    expect(found).toEqual({ identity: `small at ${bench.fake.url}`, warnings: [] });
    expect(bench.fake.count()).toBe(2);
  });

  test('tools that are refused', async () => {
    const found = await warnings((body) =>
      body.tools ? { status: 400, body: { error: { message: 'does not support tools' } } } : 'ready',
    );
    expect(found.warnings.join()).toContain('refuses tools');
  });

  test('tools that cost the reasoning', async () => {
    bench = await openBench('ready', {}, openai({ responses: false }));
    const found = await bench.client.check(new AbortController().signal);
    expect(found.warnings).toEqual(['it takes tools only while it does not reason, so it is asked not to']);
    await bench.fake.close();
    bench = await openBench('ready', {}, openai());
    expect((await bench.client.check(new AbortController().signal)).warnings).toEqual([]);
  });

  test('usage that is not reported', async () => {
    const found = await warnings({ text: 'ready', usage: null });
    expect(found.warnings.join()).toContain('does not report token usage');
    expect(bench.fake.count()).toBe(1);
  });

  test('a window that is cut silently', async () => {
    const found = await warnings((body) => {
      const counted = Math.ceil((body.messages[0]?.content ?? '').length / 4);
      return { text: 'ready', usage: { prompt_tokens: Math.min(counted, 4096), completion_tokens: 1 } };
    });
    expect(found.warnings).toHaveLength(1);
    expect(found.warnings[0]).toMatch(/counted 4096 tokens of a prompt of about 60\d\d: it cuts/);
  });

  test('a window that is small and says so, or a long prompt that fails', async () => {
    const found = await warnings((body) =>
      (body.messages[0]?.content ?? '').length > 5000
        ? { status: 400, body: { error: { message: 'the request exceeds the available context size' } } }
        : 'ready',
    );
    expect(found.warnings.join()).toContain('model.context_tokens');
    bench.fake.reply((body) => ((body.messages[0]?.content ?? '').length > 5000 ? { status: 500 } : 'ready'));
    expect((await bench.client.check(new AbortController().signal)).warnings.join()).toContain(
      'tokens failed',
    );
  });

  test('a model that only thinks has answered', async () => {
    expect((await warnings({ reasoning: 'hm', finish: 'length' })).warnings).toEqual([]);
  });

  test('what was remembered is asked anew', async () => {
    await warnings((body) =>
      body.tools ? { status: 400, body: { error: { message: 'does not support tools' } } } : 'ready',
    );
    bench.fake.reply('ready');
    expect((await bench.another().check(new AbortController().signal)).warnings).toEqual([]);
  });

  test('a server that refuses is the reason', async () => {
    await expect(warnings({ status: 401, body: { error: { message: 'no such key' } } })).rejects.toThrow(
      'no such key',
    );
  });
});
