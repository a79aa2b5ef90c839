/** The client against a scripted server: every way in which real ones answer, and do not. */
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import type { FakeModelOptions, ModelScript } from '../fakes/model.js';
import { answered, ask, type Bench, fault, KEY, LOOK_UP, openBench, outcome } from './helpers.js';

let bench: Bench;
afterEach(async () => {
  await bench.fake.close();
});

async function open(reply: FakeModelOptions['reply'], options = {}): Promise<Bench> {
  bench = await openBench(reply, options);
  return bench;
}

/** The scripts in order, the last one for ever. */
function inOrder(...scripts: (ModelScript | string)[]) {
  return (_body: unknown, n: number) => scripts[Math.min(n, scripts.length - 1)] ?? 'nothing scripted';
}

/** Lets the back-off pass that the client must be in. */
async function wait(ms: number) {
  await bench.clock.asleep(ms);
  await bench.clock.advance(ms);
}

describe('an answer', () => {
  test('text, usage, the model as the server names it; the request as configured', async () => {
    const { client, fake } = await open({
      text: 'Tea it is.',
      chunkSize: 2,
      usage: { prompt_tokens: 7, completion_tokens: 3 },
    });
    const event = await answered(client, ask('Tea?', { temperature: 0.2 }));
    expect(event).toEqual({
      kind: 'done',
      text: 'Tea it is.',
      calls: [],
      usage: { inputTokens: 7, outputTokens: 3 },
      model: 'small',
      truncated: false,
    });
    expect(fake.requests[0]?.body).toEqual({
      model: 'small',
      messages: [{ role: 'user', content: 'Tea?' }],
      stream: true,
      stream_options: { include_usage: true },
      max_tokens: 500,
      temperature: 0.2,
    });
    expect(fake.requests[0]?.headers.authorization).toBe(`Bearer ${KEY}`);
  });

  test("a persona's own model", async () => {
    const { client, fake } = await open('Yes.');
    expect((await answered(client, ask('?', { model: 'large' }))).model).toBe('large');
    expect(fake.requests[0]?.body.model).toBe('large');
  });

  test('tool calls, with text before them', async () => {
    const { client, fake } = await open({
      text: 'Let me see.',
      calls: [
        { name: 'look_up', arguments: { word: 'tea' } },
        { id: 'same', name: 'look_up', arguments: '' },
      ],
      chunkSize: 3,
    });
    const event = await answered(client, ask('Tea?', { tools: [LOOK_UP] }));
    expect(event.text).toBe('Let me see.');
    expect(event.calls).toEqual([
      { id: 'call_0_0', name: 'look_up', arguments: '{"word":"tea"}' },
      { id: 'same', name: 'look_up', arguments: '{}' },
    ]);
    expect(fake.requests[0]?.body.tools?.[0]?.function.name).toBe('look_up');
  });

  test('reasoning is neither in the text nor anywhere else', async () => {
    const { client } = await open({ reasoning: 'secret', text: '<think>secret</think>Tea.', chunkSize: 3 });
    expect(JSON.stringify(await answered(client, ask('Tea?')))).not.toContain('secret');
  });

  test('one JSON document though a stream was asked for', async () => {
    const { client } = await open({
      nonStreaming: true,
      text: 'Tea.',
      reasoning: 'hm',
      calls: [{ id: 'a', name: 'x', arguments: '{}' }],
    });
    expect(await answered(client, ask('Tea?', { tools: [LOOK_UP] }))).toMatchObject({
      text: 'Tea.',
      calls: [{ id: 'a', name: 'x', arguments: '{}' }],
      usage: { inputTokens: 1 },
    });
  });

  test('events without blank lines, with comments, carriage returns, and half a character in a piece', async () => {
    const chunk = (delta: object, finish: string | null) =>
      JSON.stringify({ choices: [{ delta, finish_reason: finish }] });
    const { client } = await open({
      raw: `: hold on\r\n\r\ndata:${chunk({ content: 'Té' }, null)}\r\ndata: ${chunk({ content: ' 茶' }, null)}\n\nevent: x\nid: 1\ndata: ${chunk({}, 'stop')}`,
    });
    expect((await answered(client, ask('?'))).text).toBe('Té 茶');
  });

  test('a server that holds the connection open after its last word is not waited for', async () => {
    const { client, clock } = await open({ text: 'Tea.', usage: null, chunkDelayMs: 0, stallAfter: 3 });
    expect((await answered(client, ask('?'))).text).toBe('Tea.');
    await expect.poll(() => clock.sleeping(), { message: 'until it is hung up on' }).toEqual([100]);
    await clock.advance(100);
    expect(clock.sleeping()).toEqual([]);
  });

  test('connections are used again', async () => {
    const { client, fake } = await open('Yes.');
    for (let i = 0; i < 20; i++) await answered(client, ask('?'));
    // Node's fetch opens a second one when the first is given back a moment too late.
    expect(fake.connections()).toBeLessThanOrEqual(2);
  });

  test('an address with a query keeps it, behind the path', async () => {
    await open('Yes.');
    const asked: (string | undefined)[] = [];
    const server = createHttpServer((request, response) => {
      asked.push(request.url);
      response.end(JSON.stringify({ choices: [{ message: { content: 'Yes.' } }] }));
    });
    const port = await new Promise<number>((resolve) => {
      server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
    });
    const baseUrl = `http://127.0.0.1:${port}/v1/?version=2`;
    const client = bench.another({ server: { baseUrl, apiKey: null, name: 'small' } });
    expect((await answered(client, ask('?'))).text).toBe('Yes.');
    expect(asked).toEqual(['/v1/chat/completions?version=2']);
    server.closeAllConnections();
    server.close();
  });

  test('a server without a key gets none, whatever the environment holds', async () => {
    await open('Yes.');
    const client = bench.another({ server: { baseUrl: bench.fake.url, apiKey: null, name: 'small' } });
    await answered(client, ask('?'));
    expect(bench.fake.requests[0]?.headers.authorization).toBeUndefined();
  });
});

describe('what a server does not take', () => {
  test('is left out, at once, and remembered: by this client and by the next', async () => {
    const { client, fake, another } = await open((body) => {
      if (body.max_tokens !== undefined) {
        const message = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.";
        return {
          status: 400,
          body: { error: { message, param: 'max_tokens', code: 'unsupported_parameter' } },
        };
      }
      if (body.temperature !== undefined)
        return { status: 400, body: { message: 'temperature is not supported' } };
      if (body.stream_options !== undefined) {
        const detail = [
          { loc: ['body', 'stream_options'], msg: 'Extra inputs are not permitted', input: {} },
        ];
        return { status: 422, body: { detail } };
      }
      return 'Yes.';
    });
    const hot = ask('?', { temperature: 1 });
    expect((await answered(client, hot)).text).toBe('Yes.');
    expect(fake.count()).toBe(4);
    expect(fake.requests[3]?.body).toMatchObject({ max_completion_tokens: 500 });

    await answered(client, hot);
    expect(fake.count()).toBe(5);
    await answered(another(), hot);
    expect(fake.count()).toBe(6);
    await expect.poll(() => bench.clock.sleeping()).toEqual([]);
  });

  test('another model of the same server is asked for everything', async () => {
    const { client, fake } = await open((body) =>
      body.model === 'small' && body.temperature !== undefined
        ? { status: 400, body: { error: { message: 'no temperature' } } }
        : 'Yes.',
    );
    await answered(client, ask('?', { temperature: 1 }));
    await answered(client, ask('?', { temperature: 1, model: 'large' }));
    expect(fake.requests.at(-1)?.body).toMatchObject({ model: 'large', temperature: 1 });
  });

  test('tools: it still chats, and the operator is told', async () => {
    const { client, fake, log } = await open((body) =>
      body.tools ? { status: 400, body: { error: 'small does not support tools' } } : 'Yes.',
    );
    const messages = [
      { role: 'user', content: 'Tea?' } as const,
      { role: 'assistant', content: '', calls: [{ id: 'a', name: 'look_up', arguments: '{}' }] } as const,
      { role: 'tool', callId: 'a', content: 'A drink.' } as const,
    ];
    const request = {
      messages: messages.map((message) => ({ ...message, calls: [...(message.calls ?? [])] })),
      tools: [LOOK_UP],
    };
    expect((await answered(client, request as never)).text).toBe('Yes.');
    expect(fake.requests[1]?.body.messages.map((message) => message.role)).toEqual([
      'user',
      'assistant',
      'user',
    ]);
    expect(log.lines.join()).toContain('does not take tools');
  });

  test('streaming', async () => {
    const { client } = await open((body) =>
      body.stream ? { status: 400, body: { error: { message: 'x', param: 'stream' } } } : 'Yes.',
    );
    expect((await answered(client, ask('?'))).text).toBe('Yes.');
  });

  test('a refusal that names what was not sent is the end, not a loop', async () => {
    const { client, fake } = await open({
      status: 400,
      body: { error: { message: 'bad max_tokens and temperature' } },
    });
    expect((await fault(client, ask('?', { temperature: 1 }))).code).toBe('model_refused');
    expect(fake.count()).toBe(3);
  });
});

describe('trouble that passes', () => {
  const page = { status: 200, body: '<html><title>Gateway</title><p>Please wait</p></html>' };
  const nothing = { status: 200, body: '' };
  const inStream = (error: unknown) => ({ raw: `data: ${JSON.stringify({ choices: [], error })}\n\n` });
  test.each<[string, ModelScript]>([
    ['500', { status: 500, body: 'no' }],
    ['429', { status: 429, body: { error: { message: 'slow down', code: 'rate_limit_exceeded' } } }],
    ['a broken connection', { drop: true }],
    ['a page', page],
    ['nothing', nothing],
    ['JSON that is cut', { status: 200, body: '{"choices": [' }],
    ['JSON that is none', { status: 200, body: { hello: 1 } }],
    ['a cut stream', { text: 'Tea is good', chunkSize: 2, cutAfter: 3 }],
    ['a stream without an end', { text: 'Tea is good', finish: null }],
    ['an error in the stream', inStream({ message: 'overloaded' })],
    ['an error in the stream, as text', inStream('overloaded')],
    ['an error in the stream, with a status', inStream({ message: 'Provider returned error', code: 502 })],
    ['an error event', { raw: 'event: error\ndata: {"message":"overloaded"}\n\n' }],
    ['an event that is not JSON', { raw: 'data: {"choices"\n\n' }],
    ['an end that says error', { text: 'Tea', finish: 'error' }],
  ])('%s: asked again after half a second, nothing of it is told', async (_name, script) => {
    const { client, fake } = await open(inOrder(script, 'Whole.'));
    const event = answered(client, ask('?'));
    await wait(500);
    expect((await event).text).toBe('Whole.');
    expect(fake.count()).toBe(2);
  });

  test('three times in all, each time later', async () => {
    const { client, fake } = await open({ status: 503, body: { error: { message: 'busy.' } } });
    const failed = fault(client, ask('?'));
    await wait(500);
    await wait(1000);
    const found = await failed;
    expect(fake.count()).toBe(3);
    expect(found.code).toBe('model_unreachable');
    expect(found.message).toBe(
      `The model server at ${fake.url} (model "small") answered with 503: busy (asked 3 times).`,
    );
  });

  test('as often as configured', async () => {
    const { client, fake } = await open({ status: 503 }, { maxAttempts: 1 });
    await fault(client, ask('?'));
    expect(fake.count()).toBe(1);
  });

  test.each([
    [{ 'retry-after': '7' }, 7000],
    [{ 'retry-after-ms': '1234', 'retry-after': '7' }, 1234],
    [{ 'retry-after': 'Thu, 01 Jan 2026 00:00:09 GMT' }, 9000],
  ])('%j is obeyed', async (headers, ms) => {
    const { client } = await open(
      inOrder({ status: 429, headers: headers as Record<string, string> }, 'Yes.'),
    );
    const event = answered(client, ask('?'));
    await wait(ms);
    expect((await event).text).toBe('Yes.');
  });

  test('a server that wants to be left alone for an hour is', async () => {
    const { client, fake } = await open({ status: 429, headers: { 'retry-after': '3600' } });
    expect((await fault(client, ask('?'))).code).toBe('model_unreachable');
    expect(fake.count()).toBe(1);
  });

  test('nobody listens there', async () => {
    await open('Yes.');
    const port = await freePort();
    const client = bench.another({
      server: { baseUrl: `http://127.0.0.1:${port}/v1`, apiKey: null, name: 'x' },
    });
    const failed = fault(client, ask('?'));
    await wait(500);
    await wait(1000);
    const found = await failed;
    expect(found.code).toBe('model_unreachable');
    expect(found.message).toContain(`could not be reached: connect ECONNREFUSED 127.0.0.1:${port}`);
    expect(found.message).toContain('model.base_url');
  });
});

describe('silence', () => {
  test.each<[string, ModelScript]>([
    ['before the headers', { stall: 'headers' }],
    ['within the stream', { text: 'Tea is good', chunkSize: 2, stallAfter: 2 }],
  ])('%s ends the attempt, which is not repeated', async (_name, script) => {
    const { client, fake } = await open(script);
    const failed = fault(client, ask('?'));
    await fake.received(1);
    await bench.clock.asleep(60_000);
    await bench.clock.advance(59_000);
    expect(fake.requests[0]?.abandoned).toBe(false);
    // What was heard meanwhile may have moved the end; never by more than the whole time again.
    await bench.clock.advance(61_000);
    const found = await failed;
    expect(found.code).toBe('model_silent');
    expect(found.message).toContain('was silent for 60 s');
    expect(fake.count()).toBe(1);
  });
});

describe('a refusal', () => {
  test('tells the operator what the server said, and never the key', async () => {
    const { client, fake } = await open({
      status: 401,
      body: { error: { message: `Incorrect API key: ${KEY}.` } },
    });
    const found = await fault(client, ask('?'));
    expect(fake.count()).toBe(1);
    expect(found.code).toBe('model_refused');
    expect(found.message).toBe(
      `The model server at ${fake.url} (model "small") answered with 401: Incorrect API key: [key]. Check model.api_key.`,
    );
    expect(found.cause).toBeUndefined();
    expect(bench.log.lines.join()).not.toContain(KEY);
  });

  test('a short key is hidden, and the words around it are not', async () => {
    await open({ status: 401, body: { error: { message: 'key sk-a is no key of skate-ask-ab' } } });
    const client = bench.another({ server: { baseUrl: bench.fake.url, apiKey: 'sk-a', name: 'small' } });
    expect((await fault(client, ask('?'))).message).toContain('key [key] is no key of skate-ask-ab');
  });

  test.each(['http://me:hidden@', 'http://me:hid%64en@'])(
    'a password in the address (%s) is not shown',
    async (start) => {
      await open({ status: 500, body: 'oops' }, { maxAttempts: 1 });
      const baseUrl = bench.fake.url.replace('http://', start);
      const client = bench.another({ server: { baseUrl, apiKey: null, name: 'small' } });
      const found = await fault(client, ask('?'));
      expect(found.message).toContain('oops');
      expect(found.message).not.toMatch(/hid(d|%64)en/);
    },
  );

  test('a key in the address is not shown, even where the server repeats it', async () => {
    await open('Yes.');
    const client = bench.another({
      server: { baseUrl: `${bench.fake.url}?token=hidden`, apiKey: null, name: 'small' },
    });
    expect((await fault(client, ask('?'))).message).not.toContain('hidden');
  });

  test('no credit is not asked again', async () => {
    const { client, fake } = await open({
      status: 429,
      body: {
        error: { message: 'You exceeded your quota', type: 'insufficient_quota', code: 'insufficient_quota' },
      },
    });
    const found = await fault(client, ask('?'));
    expect(found.code).toBe('model_refused');
    expect(fake.count()).toBe(1);
  });

  test('too long a conversation has a code of its own', async () => {
    const { client } = await open({
      status: 400,
      body: { error: { message: 'no', code: 'context_length_exceeded' } },
    });
    expect((await fault(client, ask('?'))).code).toBe('context_too_long');
  });
});

describe('stopping', () => {
  test.each<[string, ModelScript]>([
    ['before the headers', { stall: 'headers' }],
    ['within the stream', { text: 'Tea is good', chunkSize: 2, stallAfter: 2 }],
    ['while waiting to ask again', { status: 500 }],
  ])('%s: at once, and the server is hung up on', async (_name, script) => {
    const { client, fake } = await open(script);
    const stop = new AbortController();
    const failed = fault(client, ask('?'), stop.signal);
    await fake.received(1);
    await bench.clock.asleep(script.status === undefined ? 60_000 : 500);
    stop.abort();
    expect((await failed).message).toContain('request was stopped');
    expect(fake.count()).toBe(1);
    expect(bench.clock.sleeping()).toEqual([]);
  });

  test('before it began: nothing is sent', async () => {
    const { client, fake } = await open('Yes.');
    const event = await outcome(client, ask('?'), AbortSignal.abort());
    expect(event.kind).toBe('failed');
    expect(fake.count()).toBe(0);
  });

  test('nothing sleeps on after an answer', async () => {
    const { client, clock } = await open('Yes.');
    await answered(client, ask('?'));
    // The end of the connection may come a moment after that of the answer.
    await expect.poll(() => clock.sleeping()).toEqual([]);
  });
});

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer();
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}
