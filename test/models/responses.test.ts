/** Models that take tools only while they do not reason, or on the Responses API. */
import { afterEach, describe, expect, test } from 'vitest';
import type { ModelMessage, ModelRequest } from '../../src/core/model.js';
import { ServerError } from '../../src/models/failures.js';
import { createResponsesAnswer } from '../../src/models/responses.js';
import type { ModelReply } from '../fakes/model.js';
import { openai } from '../fakes/model-servers/openai.js';
import { refuse } from '../fakes/model-servers/server.js';
import { answered, type Bench, LOOK_UP, openBench, turnWithCalls } from './helpers.js';

let bench: Bench;
afterEach(async () => {
  await bench.fake.close();
});

const question: ModelMessage = { role: 'user', content: 'What is tea?' };
const CALL = { name: 'look_up', arguments: { word: 'tea' } };
const request = (messages: ModelMessage[]): ModelRequest => ({ messages, tools: [LOOK_UP] });

const reply: ModelReply = ({ messages, tools }) => {
  if (messages.at(-1)?.role === 'tool') return 'A drink.';
  return tools === undefined ? 'No idea.' : { text: 'I look.', calls: [CALL, CALL] };
};

/** A turn with calls, under ids of our own as the turn gives them. */
async function turn(before: ModelMessage[], client = bench.client): Promise<ModelMessage[]> {
  const { messages } = await turnWithCalls(client, request, [...before, question]);
  return messages;
}

const paths = () => bench.fake.requests.map(({ path }) => path);
const lastRaw = () => bench.fake.requests.at(-1)?.raw ?? {};

describe('where the server has the Responses API', () => {
  test('it is used, with tools and with what the model thought; found out once', async () => {
    bench = await openBench(reply, {}, openai());
    const afterOne = await turn([]);
    expect(afterOne.at(-1)?.content).toBe('A drink.');
    expect(paths()).toEqual(['/chat/completions', '/chat/completions', '/responses', '/responses']);
    expect(lastRaw()).toMatchObject({
      ...{ model: 'small', stream: true, store: false, include: ['reasoning.encrypted_content'] },
      max_output_tokens: 500,
      tools: [{ type: 'function', ...LOOK_UP, strict: false }],
    });
    const input = lastRaw().input as { type?: string; call_id?: string }[];
    expect(input.map(({ type }) => type ?? 'message')).toEqual([
      ...['message', 'reasoning', 'message', 'function_call', 'function_call'],
      ...['function_call_output', 'function_call_output'],
    ]);
    expect(input.slice(3).map(({ call_id }) => call_id)).toEqual([
      ...['000000000', '000000001', '000000000', '000000001'],
    ]);

    // Two turns later, and by another process.
    await turn(JSON.parse(JSON.stringify(await turn(afterOne))), bench.another());
    expect(paths().slice(4)).toEqual(Array(4).fill('/responses'));
  });

  test('calls of another server, and pictures, are taken there', async () => {
    bench = await openBench(reply, {}, openai());
    const calls = [{ id: 'abcdefgh1', name: 'look_up', arguments: 'not JSON' }];
    await turn([
      { role: 'system', content: 'Be kind.' },
      { ...question, images: [{ mimeType: 'image/png', bytes: Buffer.from('png') }] },
      { role: 'assistant', content: '', calls, echo: { server: 'x', model: 'small', message: { a: 1 } } },
      { role: 'tool', callId: 'abcdefgh1', content: 'A drink.' },
      { role: 'assistant', content: '', calls: [] },
    ]);
    expect((lastRaw().input as object[]).slice(0, 4)).toEqual([
      { role: 'system', content: 'Be kind.' },
      {
        role: 'user',
        content: [
          { type: 'input_text', text: 'What is tea?' },
          { type: 'input_image', image_url: 'data:image/png;base64,cG5n', detail: 'auto' },
        ],
      },
      { type: 'function_call', call_id: 'abcdefgh1', name: 'look_up', arguments: '{"not_json":"not JSON"}' },
      { type: 'function_call_output', call_id: 'abcdefgh1', output: 'A drink.' },
    ]);
  });

  test('what the operator adds, and what a prompt cache wants, is written in its own form', async () => {
    const extra = { reasoning_effort: 'high', service_tier: 'flex' };
    bench = await openBench(reply, {}, openai());
    const client = bench.another({
      server: { baseUrl: bench.fake.url, apiKey: null, name: 'gpt-5.6', extra },
    });
    const messages: ModelMessage[] = [{ role: 'system', content: 'Be kind.' }, question];
    await answered(client, { ...request(messages), cacheKey: 'chat 1', stableThrough: 0 });
    const { reasoning, service_tier, prompt_cache_key, input } = lastRaw();
    expect(paths().at(-1)).toBe('/responses');
    expect({ reasoning, service_tier, prompt_cache_key }).toEqual({
      ...{ reasoning: { effort: 'high' }, service_tier: 'flex', prompt_cache_key: 'chat 1' },
    });
    const part = { type: 'input_text', text: 'Be kind.', prompt_cache_breakpoint: { mode: 'explicit' } };
    expect(input).toEqual([
      { role: 'system', content: [part] },
      { role: 'user', content: 'What is tea?' },
    ]);
  });

  test('a temperature that the model refuses is left out there, too', async () => {
    bench = await openBench(reply, {}, openai());
    await turn([]);
    const { text } = await answered(bench.client, { ...request([question]), temperature: 0.4 });
    expect(text).toBe('I look.');
  });

  test('what it thought is left out where it can no longer be opened', async () => {
    bench = await openBench(reply, {}, openai());
    const [user, called, ...rest] = await turn([]);
    if (called?.role !== 'assistant') throw new Error('no calls');
    const items = called.echo?.items?.map((item) => ({
      ...item,
      ...('encrypted_content' in item && { encrypted_content: 'of another key' }),
    }));
    const stale = { ...called, echo: { ...called.echo, items } } as ModelMessage;
    await turn([user as ModelMessage, stale, ...rest]);
    expect(JSON.stringify(lastRaw().input)).not.toContain('of another key');
  });

  test('an answer that is cut at the limit is carried on', async () => {
    bench = await openBench(
      ({ messages }) =>
        messages.length > 1
          ? { text: 'a drink of many kinds, and of every colour.' }
          : { text: 'Tea is a drink of many kinds', finish: 'length' },
      {},
      openai(),
    );
    const { text, truncated } = await answered(bench.client, request([question]));
    expect(text).toBe('Tea is a drink of many kinds, and of every colour.');
    expect(truncated).toBe(false);
  });
});

describe('where it has none', () => {
  test('the model is asked not to reason, and keeps its tools', async () => {
    bench = await openBench(reply, {}, openai({ responses: false }));
    const before = await turn([]);
    expect(lastRaw()).toMatchObject({ reasoning_effort: 'none', tools: [{ type: 'function' }] });
    const found = bench.fake.count();
    await turn(before, bench.another());
    expect(bench.fake.count()).toBe(found + 2);
    const { notices } = await answered(bench.client, request([question]));
    expect(notices).toBeUndefined();
    await answered(bench.client, { ...request([question]), tools: [] });
    expect(lastRaw()).not.toHaveProperty('reasoning_effort');
  });

  test('an operator who wants reasoning gets tools first', async () => {
    bench = await openBench(reply, {}, openai({ responses: false }));
    const extra = { reasoning_effort: 'high' };
    const client = bench.another({ server: { baseUrl: bench.fake.url, apiKey: null, name: 'small', extra } });
    expect((await answered(client, request([question]))).calls).toHaveLength(2);
    expect(lastRaw()).toHaveProperty('reasoning_effort', 'none');
  });

  test('and takes no word against reasoning either, tools are given up, which the owner hears', async () => {
    const effort = 'Unrecognized request argument supplied: reasoning_effort';
    bench = await openBench(
      reply,
      {},
      {
        name: 'neither',
        rules: (body, n) =>
          body.reasoning_effort === undefined
            ? openai().rules(body, n)
            : refuse(400, { message: effort, param: null }),
      },
    );
    const { text, notices } = await answered(bench.client, request([question]));
    expect(text).toBe('No idea.');
    expect(notices).toEqual([
      {
        key: expect.stringContaining('small'),
        text: expect.stringContaining('neither read nor write memory'),
      },
    ]);
    expect(notices?.[0]?.text).toContain(bench.fake.url);
    // It may be told again and again: whoever tells owners knows what they have heard.
    expect((await answered(bench.another(), request([question]))).notices).toEqual(notices);
    expect((await answered(bench.client, { ...request([question]), tools: [] })).notices).toBeUndefined();
  });
});

describe('an answer', () => {
  const completed = (more: object = {}) => ({
    type: 'response.completed',
    response: {
      ...{ status: 'completed', model: 'gpt-x', error: null, output: [] },
      usage: {
        ...{ input_tokens: 90, output_tokens: 40 },
        input_tokens_details: { cached_tokens: 64 },
        output_tokens_details: { reasoning_tokens: 30 },
      },
      ...more,
    },
  });
  const said = (text: string) => ({ type: 'message', content: [{ type: 'output_text', text }] });
  const read = (...chunks: object[]) => {
    const answer = createResponsesAnswer();
    for (const chunk of chunks) answer.add(chunk);
    return answer.complete();
  };

  test('in one document is the same as in events', () => {
    const output = [
      said('One.'),
      { type: 'function_call', id: 'fc', call_id: 'c', name: 'x', arguments: '{}' },
    ];
    const { type: _, response } = completed({ output });
    const document = read({ object: 'response', ...response });
    const streamed = read(
      { type: 'response.output_text.delta', output_index: 0, delta: 'One.' },
      ...output.map((item) => ({ type: 'response.output_item.done', item })),
      completed({ output }),
    );
    expect(document).toEqual(streamed);
    expect(streamed).toMatchObject({
      ...{ text: 'One.', finish: 'tool_calls', model: 'gpt-x', reasoningTokens: 30 },
      calls: [{ id: 'c', name: 'x', arguments: '{}' }],
      usage: { inputTokens: 90, outputTokens: 40, cachedTokens: 64 },
    });
  });

  test('of several messages is paragraphs; what is null does not go back', () => {
    const { text, besides } = read(
      { type: 'response.output_text.delta', output_index: 0, delta: 'One ' },
      { type: 'response.output_text.delta', output_index: 0, delta: 'more.' },
      { type: 'response.output_item.done', item: { ...said('One more.'), status: null } },
      { type: 'response.output_text.delta', output_index: 2, delta: 'Two.' },
      completed(),
    );
    expect(text).toBe('One more.\n\nTwo.');
    expect(besides.items).toEqual([said('One more.')]);
  });

  test('that failed is a failure, in the words of the server', () => {
    const error = { code: 'rate_limit_exceeded', message: 'Slow down.' };
    const failed = { type: 'response.failed', response: { status: 'failed', error } };
    expect(() => read(failed)).toThrow(ServerError);
    expect(() => read({ type: 'error', code: 'x', message: 'Slow down.' })).toThrow('Slow down.');
  });

  test('that was filtered, or never ended, says so', () => {
    const incomplete_details = { reason: 'content_filter' };
    const filtered = { type: 'response.incomplete', response: { status: 'incomplete', incomplete_details } };
    expect(read(filtered).finish).toBe('content_filter');
    expect(read({ type: 'response.output_text.delta', delta: 'On' }).finish).toBe(null);
  });
});
