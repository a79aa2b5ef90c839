/** The context window of a model: told, refused, cut without a word, and what of it is remembered. */

import { afterEach, describe, expect, test } from 'vitest';
import type { ModelImage, ModelRequest, ToolDescription } from '../../src/core/model.js';
import { isTooLong, windowSaid } from '../../src/models/failures.js';
import type { OpenAiModelOptions } from '../../src/models/server-ways.js';
import { ServerWays } from '../../src/models/server-ways.js';
import { createWindowList } from '../../src/models/window-list.js';
import { manualClock } from '../fakes/clock.js';
import { startFakeModel } from '../fakes/model.js';
import { dashscope } from '../fakes/model-servers/dashscope.js';
import { kimi } from '../fakes/model-servers/kimi.js';
import { llamacpp } from '../fakes/model-servers/llamacpp.js';
import { lmstudio } from '../fakes/model-servers/lmstudio.js';
import { ollama4k } from '../fakes/model-servers/ollama.js';
import type { ModelServer } from '../fakes/model-servers/server.js';
import { vllm } from '../fakes/model-servers/vllm.js';
import { zai } from '../fakes/model-servers/zai.js';
import { straight } from '../harness/straight.js';
import { answered, ask, type Bench, fault, LOOK_UP, openBench, outcome } from './helpers.js';

let bench: Bench;
afterEach(async () => {
  await bench.fake.close();
});

const WORDS = ['tea', 'rain', 'lamp', 'green', 'walks', 'slowly', 'under', 'seven', 'old', 'bridges'];
/** English of about so many tokens. */
function prose(tokens: number, from = 0): string {
  let text = '';
  for (let n = from; text.length < tokens * 4; n++) text += `${WORDS[(n * 7 + (n >> 3)) % WORDS.length]} `;
  return text;
}

async function open(rules: ModelServer | undefined, options: Partial<OpenAiModelOptions> = {}) {
  bench = await openBench('Yes.', options, rules);
  return bench;
}

/** A client that may ask its server for its list of models. */
async function telling(rules: ModelServer, name: string, options: Partial<OpenAiModelOptions> = {}) {
  const { clock, fake } = await open(rules);
  const server = { baseUrl: fake.url, apiKey: 'k', name };
  const tellsWindow = createWindowList(server, straight, clock);
  return bench.another({ server, tellsWindow, ...options });
}

describe('a window that the server tells', () => {
  test.each([
    ['of a vLLM', vllm(), 'small', 8_192],
    ['of an LM Studio', lmstudio(), 'small', 4_096],
    ['of a Kimi, larger than what is assumed', kimi(), 'kimi', 128_000],
    ['of a Moonshot with a small model', kimi({ contextTokens: 8_192 }), 'kimi', 8_192],
  ])('%s', async (_, rules, name, tokens) => {
    const client = await telling(rules, name);
    expect(client.contextTokens()).toBe(128_000);
    await answered(client, ask('hello'));
    await expect.poll(() => client.contextTokens()).toBe(tokens);
  });

  test.each([
    ['Groq', { data: [{ id: 'm', context_window: 32_768 }] }, 32_768],
    ['Mistral', { data: [{ id: 'm', max_context_length: 32_000 }] }, 32_000],
    ['Anthropic', { data: [{ id: 'm', max_input_tokens: 100_000, max_tokens: 8_192 }] }, 100_000],
    [
      'OpenRouter, of the provider that it prefers',
      { data: [{ id: 'm', context_length: 131_072, top_provider: { context_length: 40_000 } }] },
      40_000,
    ],
    ['a list without the model', { data: [{ id: 'other', context_length: 4_000 }] }, 128_000],
  ])('in the list of %s', async (_, list, tokens) => {
    const pages = { 'GET /v1/models': () => list };
    const client = await telling({ name: 'a list', rules: () => null, pages }, 'm');
    await answered(client, ask('hello'));
    await answered(client, ask('hello'));
    await expect.poll(() => client.contextTokens()).toBe(tokens);
  });

  test('of a model that is loaded for its first request, once it is loaded', async () => {
    let isLoaded = false;
    const loaded = () =>
      isLoaded ? { state: 'loaded', loaded_context_length: 4_096 } : { state: 'not-loaded' };
    const pages = {
      'GET /api/v0/models': () => ({ data: [{ id: 'm', max_context_length: 131_072, ...loaded() }] }),
    };
    const rules = () => {
      isLoaded = true;
      return null;
    };
    const client = await telling({ name: 'LM Studio', rules, pages }, 'm');
    await answered(client, ask('hello'));
    await answered(client, ask('hello'));
    await expect.poll(() => client.contextTokens()).toBe(4_096);
  });

  test('never makes it larger than the operator set, and smaller with a warning', async () => {
    const small = await telling(vllm(), 'small', { contextTokens: () => 6_000 });
    await answered(small, ask('hello'));
    await expect.poll(() => bench.log.lines.join()).toContain('told its context window');
    expect(small.contextTokens()).toBe(6_000);
    await bench.fake.close();

    const large = await telling(vllm(), 'small', { contextTokens: () => 32_000 });
    await answered(large, ask('hello'));
    await expect.poll(() => large.contextTokens()).toBe(8_192);
    expect(bench.log.lines.join()).toContain('smaller than model.context_tokens');
  });

  test('of a server whose list hangs is not waited for', async () => {
    const { fake } = await open(undefined);
    const stuck = new Promise<null>(() => {});
    const client = bench.another({
      server: { baseUrl: fake.url, apiKey: null, name: 'small' },
      tellsWindow: () => stuck,
    });
    expect((await answered(client, ask('hello'))).text).toBe('Yes.');
    expect(client.contextTokens()).toBe(128_000);
  });
});

describe('how much fits, in the words of a refusal', () => {
  const words = (message: string, more = {}) => ({
    kind: 'answered' as const,
    status: 400,
    words: message,
    ...more,
  });

  test.each([
    ["This model's maximum context length is 8192 tokens. However, you requested 9000 tokens", 8_192],
    ['Your request exceeded model token limit: 262144 (requested: 300000)', 262_144],
    ['Range of input length should be [1, 30720]', 30_720],
    ['prompt is too long: 210000 tokens > 200000 maximum', 200_000],
    ['The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).', 1_048_576],
    ['Prompt contains 40000 tokens, too large for model with 32768 maximum context length', 32_768],
    ["The input (5000 tokens) is longer than the model's context length (4096 tokens).", 4_096],
    ['request (33056 tokens) exceeds the available context size (32768 tokens), try increasing it', 32_768],
    [
      'Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens',
      4_096,
    ],
    ["This model's maximum prompt length is 131,072 but the request contains 200000 tokens.", 131_072],
    ['prompt too long; exceeded max context length by 5 tokens', null],
    ['Prompt exceeds max length', null],
  ])('%j', (message, tokens) => {
    expect(isTooLong(words(message), 100)).toBe(true);
    expect(windowSaid(words(message))).toBe(tokens);
  });

  test('beside the words, or in a code', () => {
    expect(windowSaid(words('too much', { window: 4_096 }))).toBe(4_096);
    expect(isTooLong(words('no', { code: '1261' }), 100)).toBe(true);
  });

  test('nothing at all, to a long request only', () => {
    const nothing = words('an empty body', { isBodyEmpty: true });
    expect(isTooLong(nothing, 8_000)).toBe(true);
    expect(isTooLong(nothing, 200)).toBe(false);
  });
});

describe('a request that is refused for its length', () => {
  test.each([
    ['llama.cpp', llamacpp(), 4_096],
    ['vLLM', vllm(), 8_192],
    ['an Ollama that refuses', ollama4k({ tooLong: 'refused' }), null],
    ['DashScope', dashscope(), 30_720],
    ['Kimi', kimi({ contextTokens: 32_768 }), 32_768],
    ['Z.ai', zai(), null],
  ] as [string, ModelServer, number | null][])('by %s lowers the window', async (_, rules, tokens) => {
    const { client, fake } = await open(rules);
    expect((await fault(client, ask(prose(40_000)))).code).toBe('context_too_long');
    expect(fake.count()).toBe(1);
    if (tokens !== null) expect(client.contextTokens()).toBe(tokens);
    // It does not say how much: a little less than what it refused.
    else expect(client.contextTokens()).toBeLessThan(40_000);
  });

  test.each([
    ['nothing at all (Cerebras)', { status: 400, body: '' }],
    ['nothing at all, with 413', { status: 413, body: '' }],
    [
      'a proxy that takes no such body',
      { status: 413, body: '<h1>413 Request Entity Too Large</h1><hr>nginx' },
    ],
  ])('by %s does not: it does not say that the model could not hold it', async (_, script) => {
    const { client } = await open({ name: 'refusing', rules: () => script });
    expect((await fault(client, ask(prose(40_000)))).code).toBe('context_too_long');
    await fault(client, ask('hello'));
    expect(client.contextTokens()).toBe(128_000);
  });

  test('does not lower it below what a request has carried, in whichever chat', async () => {
    const small = "This model's maximum context length is 3000 tokens. However, you requested 9000 tokens.";
    const { client, fake } = await open(undefined);
    fake.reply((body) => ({
      text: 'Yes.',
      usage: { prompt_tokens: sizeIn(body, 128_000), completion_tokens: 1 },
    }));
    await answered(client, ask(prose(20_000), { cacheKey: 'one chat' }));
    fake.reply({ status: 400, body: { error: { message: small } } });
    for (let n = 0; n < 3; n++) await fault(client, ask(prose(9_000), { cacheKey: 'another' }));
    fake.reply({ status: 400, body: { error: { message: 'prompt is too long' } } });
    await fault(client, ask(prose(9_000), { cacheKey: 'another' }));
    expect(client.contextTokens()).toBeGreaterThanOrEqual(20_000);
  });

  test('of many tokens a letter, without a word of how many, says little of the others', async () => {
    const { client } = await open({
      name: 'a server without figures',
      rules: () => ({ status: 400, body: { error: { message: 'prompt is too long' } } }),
    });
    await fault(client, ask('ᎣᏏᏲ'.repeat(15_000)));
    expect(client.contextTokens()).toBeGreaterThan(100_000);
  });

  test('counts for more than what is set, and owners hear how it is undone', async () => {
    const { client, fake, another } = await open(vllm(), { contextTokens: () => 32_000 });
    const failed = await outcome(client, ask(prose(40_000)));
    expect(client.contextTokens()).toBe(8_192);
    expect(failed.notices?.[0]).toMatchObject({
      key: expect.stringContaining('window-refused'),
      text: expect.stringMatching(/8192 tokens.*coterie doctor/),
    });
    expect((await answered(client, ask('hello'))).notices?.[0]?.key).toBe(failed.notices?.[0]?.key);

    // Another process, while this one runs.
    const doctor = another({ ways: new ServerWays(bench.learnt, bench.log) });
    fake.reply('ready');
    const { warnings } = await doctor.check(new AbortController().signal);
    expect(warnings.join()).toMatch(/8192 tokens; this is forgotten now/);
    expect((await answered(client, ask('hello'))).notices).toBeUndefined();
    expect(client.contextTokens()).toBe(32_000);
  });

  test('is forgotten when a request has carried more', async () => {
    const { client, fake, log } = await open(vllm());
    await fault(client, ask(prose(40_000)));
    expect(client.contextTokens()).toBe(8_192);
    fake.reply({ text: 'Yes.', usage: { prompt_tokens: 9_000, completion_tokens: 1 } });
    await answered(client, ask(prose(5_000)));
    expect(client.contextTokens()).toBe(128_000);
    expect(log.lines.join()).toContain('takes more than it was known to');
  });

  test('leaves room for the answer: the next one that fits by our count is taken', async () => {
    const { client, fake } = await open(vllm(), { maxOutputTokens: 4_096 });
    await fault(client, ask(prose(40_000)));
    await answered(client, ask(prose(6_000)));
    expect(fake.requests.at(-1)?.body.max_tokens).toBe(2_048);
  });

  test('is remembered over a restart', async () => {
    const { client, another } = await open(llamacpp());
    await fault(client, ask(prose(40_000)));
    const ways = new ServerWays(bench.learnt, bench.log);
    await ways.refresh();
    const next = another({ ways });
    expect(next.contextTokens()).toBe(4_096);
    expect(next.contextTokens('another')).toBe(128_000);
  });

  test('of a fallback that answers in the first one’s place counts until the first answers again', async () => {
    const { withFallbacks } = await import('../../src/models/retries.js');
    const { log } = await open(undefined);
    const small = await startFakeModel({ server: llamacpp(), reply: 'Small.' });
    bench.fake.reply({ status: 401, body: { error: { message: 'no' } } });
    const second = bench.another({ server: { baseUrl: small.url, apiKey: null, name: 'local' } });
    const both = withFallbacks(bench.client, [second], log);
    expect((await fault(both, ask(prose(40_000)))).code).toBe('context_too_long');
    expect(both.contextTokens()).toBe(4_096);
    bench.fake.reply('Yes.');
    await answered(both, ask('hello'));
    expect(both.contextTokens()).toBe(128_000);
    await small.close();
  });
});

describe('a request that is cut without a word', () => {
  /** Turns of a conversation that grows, with what a turn alone has behind its words. */
  async function converse(client: Bench['client'], sizes: number[], chat = 'a chat') {
    const events = [];
    for (const [n, tokens] of sizes.entries()) {
      const content = `${prose(tokens)}(It is turn ${n}.)`;
      events.push(await answered(client, ask(content, { cacheKey: chat })));
    }
    return events;
  }

  test('is noticed by the count, and in a conversation that goes on, the window is what Ollama keeps half of', async () => {
    const { client, log } = await open(ollama4k());
    const [whole, cut] = await converse(client, [3_000, 5_000]);
    expect([whole?.cut, cut?.cut]).toEqual([undefined, true]);
    expect(cut?.notices?.[0]?.key).toContain('window-cut');
    expect(cut?.notices?.[0]?.text).toMatch(/4096 tokens.*coterie doctor/);
    expect(client.contextTokens()).toBe(4_096);
    expect(log.lines.join()).toContain('cut a long request without a word');
    const [next] = await converse(client, [2_500], 'another chat');
    expect(next?.cut).toBe(undefined);
    // The same news, for whoever had no ear for it the first time.
    expect(next?.notices?.[0]?.key).toBe(cut?.notices?.[0]?.key);
  });

  test('by less than its guess: then the count is the window', async () => {
    const { client } = await open(keeping(3_000));
    await converse(client, [2_000, 5_000]);
    expect(client.contextTokens()).toBe(128_000);
    expect((await converse(client, [9_000, 12_000])).map(({ cut }) => cut)).toEqual([true, true]);
    expect(client.contextTokens()).toBe(3_000);
  });

  test('once, or in one request alone, teaches nothing', async () => {
    const { client } = await open(ollama4k());
    expect((await answered(client, ask(prose(9_000)))).cut).toBe(true);
    expect((await answered(client, ask(prose(12_000)))).cut).toBe(true);
    expect((await answered(client, ask(prose(9_000), { cacheKey: 'a chat' }))).cut).toBe(true);
    expect(client.contextTokens()).toBe(128_000);
  });

  test('does not count for more than what is set, and owners hear of it all the same', async () => {
    const { client } = await open(ollama4k(), { contextTokens: () => 32_000 });
    const events = await converse(client, [3_000, 5_000, 7_000]);
    expect(client.contextTokens()).toBe(32_000);
    expect(events.at(-1)?.notices?.[0]?.text).toMatch(/about 4096 tokens.*model\.context_tokens \(32000\)/);
  });

  test('teaches nothing against what another chat has carried', async () => {
    const { client, fake } = await open(undefined);
    fake.reply({ text: 'Yes.', usage: { prompt_tokens: 30_000, completion_tokens: 1 } });
    await converse(client, [30_000], 'a chat of others');
    fake.reply({ text: 'Yes.', usage: { prompt_tokens: 2_050, completion_tokens: 1 } });
    await converse(client, [5_000, 7_000, 9_000]);
    expect(client.contextTokens()).toBe(128_000);
  });

  test('is noticed on a plateau, while the conversation grows', async () => {
    const { client } = await open(keeping(8_000));
    const cut: boolean[] = [];
    for (let n = 1; n <= 12; n++) {
      const request = ask(prose(1_000 * n), { cacheKey: 'a chat' });
      cut.push((await answered(client, request)).cut === true);
    }
    expect(cut.indexOf(true)).toBe(8);
    expect(client.contextTokens()).toBe(8_000);
  });

  test.each([
    ['Russian, three characters a token', 'слово за слово, и чай остыл на столе у окна ', 3],
    ['Chinese', '我们明天一起去喝茶然后看一场电影好不好', 1.5],
    ['one character over and over', '='.repeat(400), 16],
    ['English of long words', 'extraordinarily uncharacteristic internationalisation ', 6],
  ])('is not what %s looks like', async (_, text, charsPerToken) => {
    const honest: ModelServer = {
      name: 'a server that counts as tokenisers do',
      rules: ({ messages }) => {
        const [system = 0, said = 0] = messages.map(({ content }) => content?.length ?? 0);
        const prompt_tokens = Math.ceil(system / 4 + said / charsPerToken);
        return { text: 'Yes.', usage: { prompt_tokens, completion_tokens: 1 } };
      },
    };
    const { client } = await open(honest);
    for (let n = 1; n <= 8; n++) {
      const long = text.repeat(Math.ceil((4_000 * n) / text.length));
      const request: ModelRequest = {
        messages: [
          { role: 'system', content: prose(1_000) },
          { role: 'user', content: long },
        ],
        tools: [LOOK_UP],
        cacheKey: 'a chat',
      };
      expect((await answered(client, request)).cut, `round ${n}`).toBe(undefined);
    }
    expect(client.contextTokens()).toBe(128_000);
  });

  test.each([
    ['words in a rare script, /reset, plain words', ['ᎣᏏᏲ ᏙᎯᏧ '.repeat(1_500), prose(12_000), prose(14_000)]],
    ['numbers, /reset, plain words', ['8471 9920 1537 '.repeat(1_500), prose(9_000), prose(11_000)]],
    ['long words, again and again', [1, 2, 3, 4].map((n) => ' responsibilities'.repeat(4_000 * n))],
    [
      'blanks and marks that a server leaves out',
      [1, 2, 3, 4].map((n) => `${prose(2_000)}${' \n\u200b'.repeat(9_000 * n)}`),
    ],
  ])('is not what %s look like', async (_, said) => {
    const honest: ModelServer = {
      name: 'a server that counts each word, digit and rare letter',
      rules: ({ messages }) => {
        const text = messages.map(({ content }) => content ?? '').join();
        const prompt_tokens = text.match(/[a-z]+|\d|[\u1300-\u13ff]|[^\s\u200b]/g)?.length ?? 0;
        const rare = text.match(/[\u1300-\u13ff]/g)?.length ?? 0;
        return { text: 'Yes.', usage: { prompt_tokens: prompt_tokens + 2 * rare, completion_tokens: 1 } };
      },
    };
    const { client } = await open(honest);
    for (const content of said) {
      const messages: ModelRequest['messages'] = [
        { role: 'system', content: prose(1_500) },
        { role: 'user', content },
      ];
      await answered(client, { messages, tools: [], cacheKey: 'a chat' });
    }
    expect(client.contextTokens()).toBe(128_000);
  });

  test('is not what a server does that counts nonsense, or leaves out what it had in its cache', async () => {
    const usage = { prompt_tokens: 1, completion_tokens: 1 };
    const { client, fake } = await open(undefined);
    fake.reply({ text: 'Yes.', usage });
    expect((await answered(client, ask(prose(9_000)))).cut).toBe(undefined);
    expect(client.contextTokens()).toBe(128_000);
  });

  test.each<[string, { images?: ModelImage[]; tools?: ToolDescription[]; isThought?: true }]>([
    ['a picture that is shown no more', { images: [{ mimeType: 'image/png', bytes: Buffer.from('p') }] }],
    ['tools that are not offered this time', { tools: [LOOK_UP] }],
    ['thoughts that need not go back any more', { isThought: true }],
  ])('is not what %s looks like', async (_, { images, tools = [], isThought }) => {
    const honest: ModelServer = {
      name: 'a server that counts all that it is sent',
      rules: (body) => {
        const large = /"images"|look_up|reasoning_content/.test(JSON.stringify(body)) ? 3_000 : 0;
        return {
          text: 'Yes.',
          usage: { prompt_tokens: sizeIn(body, 128_000) + large, completion_tokens: 1 },
        };
      },
    };
    const { client, fake } = await open(honest);
    const echo = { server: fake.url, model: 'small', message: { reasoning_content: 'Hm. '.repeat(3_000) } };
    const called: ModelRequest['messages'] = [
      { role: 'assistant', content: '', calls: [{ id: 'a', name: 'x', arguments: '{}' }], echo },
      { role: 'tool', callId: 'a', content: 'y' },
    ];
    const chat = { cacheKey: 'a chat' };
    const first = ask(prose(3_000), { ...chat, tools });
    first.messages = [
      { role: 'user', content: prose(3_000), ...(images && { images }) },
      ...(isThought ? called : []),
    ];
    await answered(client, first);
    expect((await answered(client, ask(prose(5_000), chat))).cut).toBe(undefined);
    expect((await answered(client, ask(prose(7_000), chat))).cut).toBe(undefined);
    expect(client.contextTokens()).toBe(128_000);
  });

  test('and what was learnt of it is void when the server tells another window than then', async () => {
    let told = 4_096;
    const pages = { 'GET /v1/models': () => ({ data: [{ id: 'small', max_model_len: told }] }) };
    const client = await telling({ ...ollama4k(), pages }, 'small');
    for (const tokens of [9_000, 11_000]) await answered(client, ask(prose(tokens), { cacheKey: 'a chat' }));
    await answered(client, ask('hello'));
    await expect.poll(() => client.contextTokens()).toBe(4_096);
    told = 32_768;
    await bench.clock.advance(2 * 3_600_000);
    await answered(client, ask('hello'));
    await expect.poll(() => client.contextTokens()).toBe(32_768);
  });
});

describe('a stream without any content', () => {
  test('to a long request is what LM Studio says to one that does not fit', async () => {
    const { client, fake } = await open(lmstudio());
    await answered(client, ask(prose(1_500)));
    const found = await fault(client, ask(prose(9_000)));
    expect(found.code).toBe('context_too_long');
    expect(fake.count()).toBe(2);
    // A shorter request may do. One such answer is no evidence, for the other chats least of all.
    expect(client.contextTokens()).toBe(128_000);
    expect((await answered(client, ask(prose(3_000)))).text).toBe('Yes.');
  });

  test('to a short one is an empty answer; twice to one about as long as the longest that was answered, it may not fit', async () => {
    const { client, fake } = await open(undefined);
    fake.reply({ text: 'Yes.', usage: null });
    await answered(client, ask(prose(9_000)));
    fake.reply({ deltas: [], finish: 'stop', usage: null });
    expect((await fault(client, ask('hello'))).code).toBe('model_empty');
    expect((await fault(client, ask(prose(7_000)))).code).toBe('model_empty');
    const before = fake.count();
    expect((await fault(client, ask(prose(9_100)))).code).toBe('context_too_long');
    expect(fake.count()).toBe(before + 2);
    expect(client.contextTokens()).toBe(128_000);
  });
});

/** A server that leaves out the oldest of what is more, and counts the rest. */
function keeping(most: number): ModelServer {
  return {
    name: `a server that keeps ${most}`,
    rules: (body) => ({ text: 'Yes.', usage: { prompt_tokens: sizeIn(body, most), completion_tokens: 1 } }),
  };
}

function sizeIn(body: { messages: { content: string | null }[] }, most: number): number {
  const chars = body.messages.reduce((sum, { content }) => sum + (content?.length ?? 0), 0);
  return Math.min(most, Math.ceil(chars / 4));
}

test('a list cannot be asked for with a key that holds what no header may', async () => {
  const server = { baseUrl: 'http://127.0.0.1:9/v1', apiKey: 'ключ' };
  expect(await createWindowList(server, straight, manualClock())('m')).toBe(null);
});
