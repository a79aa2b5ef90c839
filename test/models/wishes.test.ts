/** What requests hold beside the conversation: an operator's fields and headers, and what a prompt cache wants. */
import { afterEach, describe, expect, test } from 'vitest';
import type { ModelMessage } from '../../src/core/model.js';
import { usageOf } from '../../src/models/answer.js';
import type { OpenAiModelOptions } from '../../src/models/server-ways.js';
import type { FakeModelOptions } from '../fakes/model.js';
import { promptCache } from '../fakes/prompt-cache.js';
import { answered, ask, type Bench, fault, LOOK_UP, openBench } from './helpers.js';

let bench: Bench;
afterEach(async () => {
  await bench.fake.close();
});

type Server = Partial<OpenAiModelOptions['server']>;

async function open(reply: FakeModelOptions['reply'], server: Server = {}) {
  bench = await openBench(reply);
  const client = bench.another({
    server: { baseUrl: bench.fake.url, apiKey: 'k-for-the-door', name: 'small', ...server },
  });
  return { ...bench, client };
}

const bodies = () => bench.fake.requests.map(({ raw }) => raw);

describe('what the operator adds', () => {
  test('stands in the body, and counts more than what the gateway would say', async () => {
    const { client } = await open('fine', {
      temperature: 0.8,
      extra: { top_p: 0.9, provider: { order: ['a'] }, max_completion_tokens: 9 },
    });
    await answered(client, ask('?'));
    expect(bodies()[0]).toMatchObject({ temperature: 0.8, top_p: 0.9, provider: { order: ['a'] } });
    expect(bodies()[0]).toMatchObject({ max_completion_tokens: 9, stream: true });
    expect(bodies()[0], 'one limit only').not.toHaveProperty('max_tokens');
  });

  test('a persona’s own temperature counts more than the configured one', async () => {
    const { client } = await open('fine', { temperature: 0.8 });
    await answered(client, ask('?', { temperature: 0.1 }));
    expect(bodies()[0]).toMatchObject({ temperature: 0.1 });
  });

  test('is left out where the server refuses it', async () => {
    const { client, fake } = await open(
      (body) =>
        body.temperature === undefined
          ? 'fine'
          : { status: 400, body: { error: { message: '`temperature` is deprecated for this model.' } } },
      { extra: { temperature: 0.3, top_k: 5 } },
    );
    await answered(client, ask('?'));
    await answered(client, ask('?'));
    expect(fake.count()).toBe(3);
    expect(bodies().at(-1)).toMatchObject({ top_k: 5 });
  });

  test('is left out where the server refuses a choice of tools; the tools stay', async () => {
    const message = 'tool_choice: "auto" is not supported here.';
    const { client, fake } = await open(
      ({ tool_choice }) => {
        if (fake.count() > 3) return { status: 401 };
        return tool_choice === undefined ? 'fine' : { status: 400, body: { error: { message } } };
      },
      { extra: { tool_choice: 'auto' } },
    );
    expect((await answered(client, ask('?', { tools: [LOOK_UP] }))).text).toBe('fine');
    expect(fake.count()).toBe(2);
    expect(bodies()[1]?.tools).toHaveLength(1);
  });

  test('is not asked for without end where leaving it out does not help', async () => {
    const message = 'Streaming is not supported for this model';
    const { client, fake } = await open(
      () => (fake.count() > 5 ? { status: 401 } : { status: 400, body: { error: { message } } }),
      { extra: { stream: true } },
    );
    expect((await fault(client, ask('?'))).message).toContain(message);
    expect(fake.count()).toBe(2);
  });

  test('holds secrets that are in no error', async () => {
    const message = 'The key t0p-secret-value of the data source is wrong.';
    const authentication = { type: 'api_key', key: 't0p-secret-value' };
    const { client, log } = await open(
      { status: 400, body: { error: { message } } },
      { extra: { data_sources: [{ parameters: { authentication } }] } },
    );
    const { message: words } = await fault(client, ask('?'));
    expect(words).toContain('of the data source is wrong');
    expect(words + log.lines.join()).not.toContain('t0p-secret-value');
  });

  test('headers go along, also in place of ours, and their secrets are in no error', async () => {
    const { client, fake } = await open(
      { status: 403, body: { error: { message: 'no: Basic hidden-words, nor coterie' } } },
      { headers: { 'X-Title': 'coterie', Authorization: 'Basic hidden-words' } },
    );
    const found = await fault(client, ask('?'));
    expect(fake.requests[0]?.headers).toMatchObject({
      'x-title': 'coterie',
      authorization: 'Basic hidden-words',
    });
    expect(found.message).not.toContain('hidden');
    expect(found.message).toContain('nor coterie');
  });
});

describe('a prompt cache', () => {
  const long = (name: string) => `${name} `.repeat(1_500);
  const history: ModelMessage[] = [{ role: 'system', content: long('rules') }];

  /** Rounds of a conversation whose last message changes: what was recalled stands in it. */
  async function talk(model: string, cache: ReturnType<typeof promptCache>, rounds = 5) {
    const { client } = await open(cache.reply, { name: model });
    const messages = [...history];
    const used = [];
    for (let n = 0; n < rounds; n++) {
      const asked: ModelMessage = { role: 'user', content: `recalled ${n}: ${n * 7}\nword ${n}` };
      const request = { messages: [...messages, asked], tools: [LOOK_UP], cacheKey: 'room-1' };
      used.push((await answered(client, { ...request, stableThrough: messages.length - 1 })).usage);
      messages.push(
        { role: 'user', content: long(`said-${n}`) },
        { role: 'assistant', content: 'fine', calls: [] },
      );
    }
    return used;
  }

  test('is told which requests belong together, and says what it held', async () => {
    const cache = promptCache('automatic');
    const used = await talk('small', cache);
    expect(new Set(bodies().map(({ prompt_cache_key }) => prompt_cache_key))).toEqual(new Set(['room-1']));
    expect(used.map((usage) => usage?.cachedTokens)).toEqual(cache.counted.map(({ cached }) => cached));
    expect(used.at(-1)?.cachedTokens).toBeGreaterThan(5_000);
    expect(JSON.stringify(bodies())).not.toMatch(/cache_control|breakpoint/);
  });

  test.each([
    ['gpt-5.6', 'at the last message', { prompt_cache_breakpoint: { mode: 'explicit' } }],
    ['anthropic/claude-opus-4.8', 'where marked', { cache_control: { type: 'ephemeral' } }],
    ['qwen/qwen3-max', 'where marked', { cache_control: { type: 'ephemeral' } }],
  ] as const)('that wants marks gets them (%s)', async (model, how, field) => {
    const cache = promptCache(how);
    const used = await talk(model, cache);
    expect(bodies()[0]?.messages).toMatchObject([
      { role: 'system', content: [{ type: 'text', text: long('rules'), ...field }] },
      { role: 'user', content: expect.any(String) },
    ]);
    // All but what was said last, which no request held before.
    for (const [n, { tokens, cached }] of cache.counted.entries()) {
      if (n > 0) expect(cached).toBeGreaterThan(tokens - 3_500);
    }
    expect(used.at(-1)?.cacheWriteTokens).toBeLessThan(3_500);
  });

  test('that refuses marks is asked without from then on', async () => {
    const { client, fake, learnt } = await open(
      (body) =>
        body.messages.some(({ mark }) => mark !== undefined)
          ? {
              status: 400,
              body: {
                error: { message: "Unknown parameter: 'messages[0].content[0].prompt_cache_breakpoint'." },
              },
            }
          : 'fine',
      { name: 'gpt-5.6-mini' },
    );
    const request = { ...ask('?'), messages: [...history, ...ask('?').messages], stableThrough: 0 };
    await answered(client, request);
    await answered(client, request);
    expect(fake.count()).toBe(3);
    expect(learnt.read()).toContain('cache_marks');
  });

  test('gets tools that must not be called with a word that they must not', async () => {
    const { client } = await open('fine');
    await answered(client, { ...ask('?'), tools: [LOOK_UP], mayCall: false });
    await answered(client, { ...ask('?'), tools: [LOOK_UP] });
    await answered(client, { ...ask('?'), tools: [], mayCall: false });
    expect(bodies().map(({ tool_choice }) => tool_choice)).toEqual(['none', undefined, undefined]);
    expect(bodies()[0]?.tools).toEqual(bodies()[1]?.tools);
  });

  // Such words are else taken for a refusal of tools, and a persona without them has no memory.
  test.each([
    "Invalid value: 'none'. Supported values are: 'auto'. param: tool_choice",
    'tool choice is not supported by this model',
  ])('keeps its tools where the word itself is refused: %s', async (message) => {
    const { client, fake, learnt } = await open((body) =>
      (body as { tool_choice?: string }).tool_choice === undefined
        ? 'fine'
        : { status: 400, body: { error: { message } } },
    );
    const request = { ...ask('?'), tools: [LOOK_UP], mayCall: false };
    await answered(client, request);
    await answered(client, request);
    expect(fake.count()).toBe(3);
    for (const { tools } of bodies()) expect(tools).toHaveLength(1);
    expect(learnt.read()).toContain('tool_choice');
    expect(learnt.read()).not.toContain('"tools"');
  });

  test.each([
    ['by its name', 'Unrecognized request argument supplied: prompt_cache_key'],
    ['without naming it', 'Invalid JSON payload received. Unknown field in the request.'],
  ])('whose key is refused %s is asked without it', async (_, message) => {
    const { client, fake } = await open((body) =>
      body.prompt_cache_key === undefined ? 'fine' : { status: 400, body: { error: { message } } },
    );
    await answered(client, ask('?', { cacheKey: 'room-1' }));
    await answered(client, ask('?', { cacheKey: 'room-1' }));
    expect(fake.count()).toBe(3);
  });

  test('leaves a picture where it was, and marks the part behind it', async () => {
    const { client } = await open('fine', { name: 'claude' });
    const images = [{ mimeType: 'image/png' as const, bytes: Buffer.from('png') }];
    const messages: ModelMessage[] = [{ role: 'user', content: 'Look.', images }, ...ask('And?').messages];
    await answered(client, { messages, tools: [], stableThrough: 0 });
    expect(bodies()[0]?.messages).toMatchObject([
      {
        content: [
          { type: 'text', text: 'Look.' },
          { type: 'image_url', cache_control: { type: 'ephemeral' } },
        ],
      },
      { content: 'And?' },
    ]);
  });
});

describe('what was counted', () => {
  test.each([
    [
      'OpenAI',
      { prompt_tokens_details: { cached_tokens: 4, cache_write_tokens: 2 } },
      { cachedTokens: 4, cacheWriteTokens: 2 },
    ],
    ['DeepSeek', { prompt_cache_hit_tokens: 4, prompt_cache_miss_tokens: 6 }, { cachedTokens: 4 }],
    ['Moonshot', { cached_tokens: 4 }, { cachedTokens: 4 }],
    [
      'Anthropic’s own',
      { cache_read_input_tokens: 4, cache_creation_input_tokens: 2 },
      { cachedTokens: 4, cacheWriteTokens: 2 },
    ],
    ['a server without a cache', { prompt_tokens_details: null }, {}],
  ])('in the words of %s', (_, more, cached) => {
    const usage = { prompt_tokens: 10, completion_tokens: 3, ...more };
    expect(usageOf(usage)).toEqual({ inputTokens: 10, outputTokens: 3, ...cached });
  });

  test('in those of the Responses API; and nothing', () => {
    const usage = { input_tokens: 10, output_tokens: 3, input_tokens_details: { cached_tokens: 4 } };
    expect(usageOf(usage)).toEqual({ inputTokens: 10, outputTokens: 3, cachedTokens: 4 });
    expect(usageOf({ prompt_tokens: 'ten' })).toBeNull();
    expect(usageOf(null)).toBeNull();
  });
});

test('tokens that came from the cache and stand beside the input are part of it', () => {
  const usage = { prompt_tokens: 800, completion_tokens: 5, cache_read_input_tokens: 0 };
  expect(usageOf({ ...usage, cache_creation_input_tokens: 12_000 })).toEqual({
    ...{ inputTokens: 12_800, outputTokens: 5, cachedTokens: 0, cacheWriteTokens: 12_000 },
  });
  expect(usageOf({ ...usage, prompt_tokens: 12_800, cache_creation_input_tokens: 12_000 })).toEqual({
    ...{ inputTokens: 12_800, outputTokens: 5, cachedTokens: 0, cacheWriteTokens: 12_000 },
  });
});
