/** Answers that are not whole: empty, cut at a limit, failed. Against a server that ends them as real ones do. */
import { afterEach, describe, expect, test } from 'vitest';
import type { ModelRequest } from '../../src/core/model.js';
import { continued, continuedSoFar } from '../../src/models/further.js';
import type { FakeModelOptions } from '../fakes/model.js';
import { limited } from '../fakes/model-limits.js';
import { claude } from '../fakes/model-servers/claude.js';
import { groq } from '../fakes/model-servers/groq.js';
import type { ModelServer } from '../fakes/model-servers/server.js';
import { answered, ask, type Bench, fault, LOOK_UP, openBench, outcome } from './helpers.js';

let bench: Bench;
afterEach(async () => {
  await bench.fake.close();
});

async function open(reply: FakeModelOptions['reply'], options = {}, rules?: ModelServer): Promise<Bench> {
  bench = await openBench(reply, options, rules);
  return bench;
}

const STORY = 'Once upon a time there was a teapot, and it was very old. Nobody drank from it but the cat.';

/** A turn whose tool has answered. */
const AFTER_RESULTS: ModelRequest = {
  messages: [
    { role: 'user', content: 'Remember that I like tea.' },
    { role: 'assistant', content: '', calls: [{ id: 'call00001', name: 'look_up', arguments: '{}' }] },
    { role: 'tool', callId: 'call00001', content: 'Saved.' },
  ],
  tools: [LOOK_UP],
};

const bodies = () => bench.fake.requests.map(({ body }) => body);

describe('an empty answer', () => {
  test('is asked for once more, with a new message', async () => {
    const { client } = await open((_, n) => (n === 0 ? { text: ' \n' } : 'Tea.'));
    const event = await answered(client, ask('?'));
    expect(event.text).toBe('Tea.');
    expect(event.further).toBeDefined();
    const [first, second] = bodies();
    expect(second?.messages.slice(0, -1)).toEqual(first?.messages);
    expect(second?.messages.at(-1)).toMatchObject({
      role: 'user',
      content: expect.stringContaining('continue'),
    });
  });

  test('and then is a fault', async () => {
    const { client, fake } = await open('');
    const found = await fault(client, ask('?'));
    expect(found.code).toBe('model_empty');
    expect(fake.count()).toBe(2);
  });

  test('after the results of tools: a new message brings words, the same request never would', async () => {
    const { client, fake } = await open('I will remember.', {}, claude());
    expect((await answered(client, AFTER_RESULTS)).text).toBe('I will remember.');
    expect(fake.count()).toBe(2);
  });

  test('that may be empty is an answer, and nothing more is asked', async () => {
    const { client, fake } = await open('never', {}, claude());
    const event = await answered(client, { ...AFTER_RESULTS, mayBeEmpty: true });
    expect(event).toMatchObject({ text: '', calls: [], usage: { outputTokens: 3 }, truncated: false });
    expect(fake.count()).toBe(1);
  });

  test('of nothing but thoughts is given more room, once', async () => {
    const { client, fake } = await open(limited({ whole: 'Tea.', thinks: 700 }));
    expect((await answered(client, ask('?'))).text).toBe('Tea.');
    expect(bodies().map(({ max_tokens }) => max_tokens)).toEqual([500, 2000]);
    expect(bodies()[1]?.messages).toEqual(bodies()[0]?.messages);
    expect(fake.count()).toBe(2);
  });

  test('of nothing but thoughts with more room, too, says so to the operator', async () => {
    const { client, fake } = await open(limited({ whole: 'Tea.', thinks: 9000 }));
    const found = await fault(client, ask('?', { maxOutputTokens: 300 }));
    expect(found.code).toBe('model_empty');
    expect(found.message).toContain('its limit of 300 tokens');
    expect(found.message).toContain('model.max_output_tokens');
    expect(fake.count()).toBe(2);
  });

  test('of nothing but thoughts, where the server gives no more room: nothing is learnt of its parameters', async () => {
    const { client, fake, learnt } = await open((body) =>
      (body.max_tokens ?? 0) > 500
        ? {
            status: 400,
            body: { error: { message: 'max_tokens is too large: 2000', param: 'max_tokens' } },
          }
        : { reasoning: 'hm', finish: 'length' },
    );
    expect((await fault(client, ask('?'))).message).toContain('model.max_output_tokens');
    expect(learnt.read()).toBeNull();
    expect(fake.count()).toBe(2);
  });
});

describe('an answer that is cut at its limit', () => {
  test.each(['length', 'max_tokens', 'MAX_TOKENS', 'model_length'])(
    'is carried on, and is one text (%s)',
    async (finish) => {
      const { client, fake } = await open(limited({ whole: STORY, finish }), { maxOutputTokens: 15 });
      const event = await answered(client, ask('Tell me.'));
      expect(event).toMatchObject({ text: STORY, truncated: false, usage: { outputTokens: 15 } });
      expect(event.further?.outputTokens).toBeGreaterThan(0);
      expect(fake.count()).toBe(2);
    },
  );

  test('says nothing twice where the model begins with what it had said, also while it is shown', async () => {
    const reply = limited({ whole: STORY, repeats: 22 });
    const { client } = await open((body, n) => ({ ...(reply(body, n) as object), chunkSize: 3 }), {
      maxOutputTokens: 15,
    });
    let shown = '';
    for await (const event of client.stream(ask('Tell me.'), new AbortController().signal)) {
      if (event.kind === 'text') shown += event.delta;
      expect(event.kind).not.toBe('restart');
      expect(STORY.startsWith(shown)).toBe(true);
    }
    expect(shown).toBe(STORY);
  });

  test('a second time is marked as cut', async () => {
    const { client, fake } = await open(limited({ whole: STORY }), { maxOutputTokens: 8 });
    const event = await answered(client, ask('Tell me.'));
    expect(event).toMatchObject({ text: STORY.slice(0, 64), truncated: true });
    expect(fake.count()).toBe(2);
  });

  test('and has nothing to add is marked as cut', async () => {
    const { client } = await open((_, n) => (n === 0 ? { text: 'Tea is', finish: 'length' } : ''));
    expect(await answered(client, ask('?'))).toMatchObject({ text: 'Tea is', truncated: true });
  });

  test('is kept where its rest cannot be had', async () => {
    const { client } = await open((_, n) =>
      n === 0 ? { text: 'Tea is', finish: 'length' } : { status: 401 },
    );
    expect(await answered(client, ask('?'))).toMatchObject({ text: 'Tea is', truncated: true });
  });

  test('whose limit thinking had filled gets more room for the rest', async () => {
    const { client } = await open(limited({ whole: STORY, thinks: 40 }), { maxOutputTokens: 50 });
    expect((await answered(client, ask('Tell me.'))).text).toBe(STORY);
    expect(bodies().map(({ max_tokens }) => max_tokens)).toEqual([50, 200]);
  });

  test('in the middle of a call gets more room, once', async () => {
    const call = (args: string) => ({ calls: [{ name: 'look_up', arguments: args }] });
    const { client, fake } = await open((body) =>
      (body.max_tokens ?? 0) > 500 ? call('{"word":"tea"}') : { ...call('{"word":"te'), finish: 'length' },
    );
    const event = await answered(client, ask('?', { tools: [LOOK_UP] }));
    expect(event.calls).toMatchObject([{ arguments: '{"word":"tea"}' }]);
    expect(event.truncated).toBe(false);
    expect(fake.count()).toBe(2);
  });
});

describe('an end that is a failure', () => {
  const half = (finish: string) => ({ text: 'Half of', finish });

  test.each(['sensitive', 'content_filter', 'SAFETY', 'content_filter: PROHIBITED_CONTENT', 'refusal'])(
    'a filter (%s) is a refusal, and not asked again',
    async (finish) => {
      const { client, fake } = await open(half(finish));
      expect(await fault(client, ask('?'))).toMatchObject({ code: 'model_refused' });
      expect(fake.count()).toBe(1);
    },
  );

  test('a window that is full is too long a conversation', async () => {
    const { client, fake } = await open(half('model_context_window_exceeded'));
    expect(await fault(client, ask('?'))).toMatchObject({ code: 'context_too_long' });
    expect(fake.count()).toBe(1);
  });

  test.each(['error', 'network_error', 'abort', 'insufficient_system_resource'])(
    'what may pass (%s) is asked again',
    async (finish) => {
      const { client, clock } = await open((_, n) => (n === 0 ? half(finish) : 'Tea.'));
      const event = answered(client, ask('?'));
      await clock.asleep(500);
      await clock.advance(500);
      expect((await event).text).toBe('Tea.');
    },
  );

  const isWrong = (n: number) => n === 0 || n > 1;
  test.each([
    ['Groq', 'Tea.', groq({ fails: isWrong })],
    [
      'Gemini',
      (_: unknown, n: number) => (isWrong(n) ? { finish: 'MALFORMED_FUNCTION_CALL' } : 'Tea.'),
      undefined,
    ],
  ])('a call that came out wrong (%s) is asked for again, once', async (_, reply, rules) => {
    const { client, clock, fake, learnt } = await open(reply, {}, rules);
    const first = answered(client, ask('?', { tools: [LOOK_UP] }));
    await clock.asleep(500);
    await clock.advance(500);
    expect((await first).text).toBe('Tea.');
    const second = outcome(client, ask('?', { tools: [LOOK_UP] }));
    await clock.asleep(500);
    await clock.advance(500);
    expect(await second).toMatchObject({ kind: 'failed', fault: { code: 'model_refused' } });
    expect(fake.count()).toBe(4);
    expect(learnt.read(), 'tools are not given up').toBeNull();
  });

  test('more tokens than the account may send in a minute are not too long a conversation', async () => {
    // Groq, whose 413 means that.
    const message =
      'Request too large for model `llama` in organization `org` service tier `on_demand` on tokens per minute (TPM): Limit 6000, Requested 9543, please reduce your message size and try again.';
    const { client, fake } = await open({
      status: 413,
      body: { error: { message, type: 'tokens', code: 'rate_limit_exceeded' } },
    });
    const found = await fault(client, ask('?'));
    expect(found.code).toBe('model_refused');
    expect(found.message).toContain('limit of the account');
    expect(fake.count()).toBe(1);
  });
});

describe('two halves of a text', () => {
  test.each([
    ['the cat sat on', ' the mat.', 'the cat sat on the mat.'],
    ['the cat sat on', 'cat sat on the mat.', 'the cat sat on the mat.'],
    ['the cat sat on', 'the mat.', 'the cat sat onthe mat.'],
    ['a banana', 'a banana split', 'a banana split'],
    ['ha', 'ha!', 'haha!'],
    ['', 'Tea.', 'Tea.'],
    ['Tea.', '', 'Tea.'],
  ])('%j and %j', (before, after, whole) => {
    expect(continued(before, after)).toBe(whole);
  });

  test('show the first alone until the joint is sure', () => {
    expect(continuedSoFar('the cat sat on', 'cat sat')).toBe('the cat sat on');
    expect(continuedSoFar('the cat ', 'x'.repeat(201))).toBe(`the cat ${'x'.repeat(201)}`);
    expect(continuedSoFar('', 'cat')).toBe('cat');
  });
});
