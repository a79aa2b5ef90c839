/** The fakes of real servers keep their own word. */
import { afterEach, describe, expect, test } from 'vitest';
import { type ChatBodyMessage, type FakeModel, startFakeModel } from '../model.js';
import { claude } from './claude.js';
import { deepseek } from './deepseek.js';
import { gemini3 } from './gemini3.js';
import { groq } from './groq.js';
import { kimi } from './kimi.js';
import { llamacpp } from './llamacpp.js';
import { lmstudio } from './lmstudio.js';
import { mistral } from './mistral.js';
import { ollama4k } from './ollama.js';
import { openai } from './openai.js';
import type { ModelServer } from './server.js';
import { vllm } from './vllm.js';

let fake: FakeModel;
afterEach(async () => {
  await fake.close();
});

const CALL = { id: 'abcdefgh1', type: 'function', function: { name: 'look_up', arguments: '{}' } };
const TOOLS = [{ type: 'function', function: { name: 'look_up', parameters: {} } }];
const user = { role: 'user', content: 'hi' };
const called = [
  user,
  { role: 'assistant', content: null, tool_calls: [CALL] },
  { role: 'tool', tool_call_id: 'abcdefgh1', content: 'found' },
];

function withReasoning(reasoning_content: string): object[] {
  return called.map((message) => ('tool_calls' in message ? { ...message, reasoning_content } : message));
}

interface Said {
  choices: [{ message: ChatBodyMessage }];
  usage: { prompt_tokens: number };
}

async function open(server: ModelServer) {
  fake = await startFakeModel({
    server,
    reply: { text: 'fine', calls: [{ name: 'look_up', arguments: {} }] },
  });
}

async function ask(messages: object[], more: object = {}) {
  const response = await fetch(`${fake.url}/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({ model: 'm', messages, ...more }),
  });
  return { status: response.status, said: (await response.json()) as Said };
}

describe('what a server refuses', () => {
  test.each<[string, ModelServer, object[], object]>([
    ['tools while it reasons', openai(), [user], { tools: TOOLS }],
    ['max_tokens', openai(), [user], { max_tokens: 5 }],
    ['a temperature', claude(), [user], { temperature: 0.5 }],
    ['calls without their reasoning', deepseek(), called, {}],
    ['calls with reasoning that is empty', kimi(), withReasoning(''), {}],
    ['a call that its model garbled', groq({ fails: () => true }), [user], { tools: TOOLS }],
    ['calls without their signature', gemini3(), called, {}],
    ['a user behind a tool', mistral(), [...called, user], {}],
    [
      'reasoning of another',
      mistral(),
      [user, { role: 'assistant', content: 'a', reasoning_content: 'b' }, user],
      {},
    ],
    ['a message of nothing', ollama4k(), [user, { role: 'assistant', content: null }, user], {}],
    ['what is too long', llamacpp({ nCtx: 2 }), [user, { role: 'user', content: 'and more' }], {}],
    ['what is too long in all', vllm({ maxModelLen: 100 }), [user], { max_tokens: 100 }],
    ['a call without its result', vllm(), called.slice(0, 2), {}],
  ])(
    '%s',
    async (_what, server, messages, more) => {
      await open(server);
      expect((await ask(messages, more)).status).toBeGreaterThanOrEqual(400);
      expect((await ask([user])).status).toBe(200);
    },
    10_000,
  );
});

test('DeepSeek and Gemini take what they gave', async () => {
  for (const server of [deepseek(), gemini3()]) {
    fake = await startFakeModel({ server, reply: { calls: [{ name: 'look_up', arguments: {} }] } });
    const first = await ask([user]);
    const { message } = first.said.choices[0];
    const result = { role: 'tool', tool_call_id: message.tool_calls?.[0]?.id, content: 'found' };
    expect((await ask([user, message, result, user])).status).toBe(200);
    expect(
      (await ask([user, { ...message, tool_calls: [CALL], reasoning_content: undefined }, result])).status,
    ).toBe(400);
    await fake.close();
  }
});

test('Claude says nothing after a result, and something when somebody speaks', async () => {
  fake = await startFakeModel({ server: claude(), reply: 'fine' });
  expect((await ask(called)).said.choices[0].message.content).toBeNull();
  expect((await ask([...called, user])).said.choices[0].message.content).toBe('fine');
});

test('Ollama cuts the front and counts what is left; LM Studio says nothing', async () => {
  const long = { role: 'user', content: 'word '.repeat(2_000) };
  let seen: ChatBodyMessage[] = [];
  fake = await startFakeModel({
    server: ollama4k({ numCtx: 1_000 }),
    reply: ({ messages }) => {
      seen = messages;
      return 'fine';
    },
  });
  const { said } = await ask([{ role: 'system', content: 'rules' }, long, user]);
  expect(seen.map(({ role }) => role)).toEqual(['user', 'user']);
  expect(said.usage.prompt_tokens).toBeLessThan(510);
  await fake.close();
  await open(lmstudio({ loaded: 1_000 }));
  expect((await ask([long])).said.choices[0].message.content).toBeNull();
});

test('what a server tells of itself is looked up beside the requests', async () => {
  await open(llamacpp({ nCtx: 77 }));
  const props = await (await fetch(fake.url.replace('/v1', '/props'))).json();
  expect(props).toMatchObject({ default_generation_settings: { n_ctx: 77 } });
  expect(fake.lookedUp).toEqual(['GET /props']);
  expect(fake.count()).toBe(0);
});
