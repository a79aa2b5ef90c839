/** What a server sent along with an answer that calls something goes back to it, and to nobody else. */
import { afterEach, describe, expect, test } from 'vitest';
import type { Echo, ModelMessage, ModelRequest } from '../../src/core/model.js';
import { createAnswer } from '../../src/models/answer.js';
import { chatBody } from '../../src/models/request.js';
import type { ModelScript } from '../fakes/model.js';
import { deepseek } from '../fakes/model-servers/deepseek.js';
import { gemini3 } from '../fakes/model-servers/gemini3.js';
import { groq } from '../fakes/model-servers/groq.js';
import { kimi } from '../fakes/model-servers/kimi.js';
import { mistral } from '../fakes/model-servers/mistral.js';
import { ollama4k } from '../fakes/model-servers/ollama.js';
import type { ModelServer } from '../fakes/model-servers/server.js';
import { answered, type Bench, LOOK_UP, openBench, turnWithCalls } from './helpers.js';

let bench: Bench;
afterEach(async () => {
  await bench.fake.close();
});

const CALLS: ModelScript = {
  text: 'I look.',
  calls: [
    { name: 'look_up', arguments: { word: 'tea' } },
    { name: 'look_up', arguments: { word: 'milk' } },
  ],
};

const question: ModelMessage = { role: 'user', content: 'What is tea?' };

async function open(server: ModelServer | undefined, reply: ModelScript = CALLS) {
  bench = await openBench(
    ({ messages }) => (messages.at(-1)?.role === 'tool' ? 'A drink.' : reply),
    {},
    server,
  );
}

const request = (messages: ModelMessage[]): ModelRequest => ({ messages, tools: [LOOK_UP] });

/** One turn: an answer that calls something, under ids of our own as the turn gives them, and the results. */
async function turn(before: ModelMessage[], client = bench.client): Promise<ModelMessage[]> {
  const { messages, last } = await turnWithCalls(client, request, [...before, question]);
  expect(last.echo).toBeUndefined();
  return messages;
}

const FOREIGN: ModelMessage[] = [
  question,
  {
    role: 'assistant',
    content: 'I look.',
    calls: [{ id: 'abcdefgh1', name: 'look_up', arguments: '{"word":"tea"}' }],
    echo: {
      server: 'https://elsewhere.example/v1',
      model: 'small',
      message: { reasoning_content: 'hidden' },
    },
  },
  { role: 'tool', callId: 'abcdefgh1', content: 'A drink.' },
  { role: 'assistant', content: 'It is a drink.', calls: [] },
];

const lastMessages = () => bench.fake.requests.at(-1)?.body.messages ?? [];

describe.each<[string, () => ModelServer]>([
  ['DeepSeek', deepseek],
  ['Kimi', kimi],
  ['Gemini 3', gemini3],
])('%s', (_name, server) => {
  test('takes every later request, because it gets back what it gave', async () => {
    await open(server());
    const afterOne = await turn([]);
    const afterTwo = await turn(afterOne);
    await turn(JSON.parse(JSON.stringify(afterTwo)), bench.another());
    expect(bench.fake.count()).toBe(6);
  });

  test('takes calls that were made elsewhere, told in words; asked in vain once', async () => {
    await open(server());
    const after = await turn(FOREIGN);
    const told = lastMessages();
    expect(told[1]).toEqual({
      role: 'assistant',
      content: 'I look.\n[Called look_up with {"word":"tea"}]',
    });
    expect(told[2]).toEqual({ role: 'user', content: '<tool_result of="look_up">A drink.</tool_result>' });
    expect(told.filter(({ tool_calls }) => tool_calls)).toHaveLength(1);
    expect(JSON.stringify(bench.fake.requests.map(({ raw }) => raw))).not.toContain('hidden');
    await turn(after);
    expect(bench.fake.count()).toBe(5);
  });
});

describe('what goes back', () => {
  test('a field that was empty is there', async () => {
    await open(deepseek(), { ...CALLS, reasoning: '' });
    await turn([]);
    expect(lastMessages()[1]).toMatchObject({ reasoning_content: '' });
  });

  test('stays with its call by place, whatever the ids are now', async () => {
    await open(gemini3());
    await turn([]);
    expect(lastMessages()[1]?.tool_calls).toEqual([
      {
        id: '000000000',
        type: 'function',
        function: { name: 'look_up', arguments: '{"word":"tea"}' },
        extra_content: { google: { thought_signature: 'signature 0' } },
      },
      { id: '000000001', type: 'function', function: { name: 'look_up', arguments: '{"word":"milk"}' } },
    ]);
  });

  test('never goes to another model of the same server', async () => {
    await open(undefined, { ...CALLS, reasoning: 'hidden' });
    const after = await turn([]);
    expect(lastMessages()[1]).toHaveProperty('reasoning_content', 'hidden');
    await answered(bench.client, { ...request([...after, question]), model: 'large' });
    expect(lastMessages()[1]).not.toHaveProperty('reasoning_content');
  });

  test('is not what is shown, and not kept with an answer that calls nothing', async () => {
    await open(undefined, { text: 'Tea.', reasoning: 'hidden' });
    expect(await answered(bench.client, request([question]))).not.toHaveProperty('echo');
    await bench.fake.close();
    await open(undefined, { ...CALLS, reasoning: 'hidden' });
    const { text, echo } = await answered(bench.client, request([question]));
    expect(text).toBe('I look.');
    expect(echo).toEqual({
      server: bench.fake.url,
      model: 'small',
      message: { reasoning_content: 'hidden' },
    });
  });

  test('is left out where a server does not take its own fields', async () => {
    await open(groq(), { ...CALLS, reasoning: 'hidden' });
    await turn(await turn([]));
    // Refused once, then remembered.
    expect(bench.fake.count()).toBe(5);
    expect(lastMessages().some((message) => 'reasoning_content' in message)).toBe(false);
  });
});

describe('calls made elsewhere', () => {
  test('are taken by Mistral as they are, without what came along with them', async () => {
    await open(mistral());
    await turn(FOREIGN);
    expect(lastMessages()[1]?.tool_calls).toHaveLength(1);
    expect(bench.fake.count()).toBe(2);
  });

  test('are taken by Ollama', async () => {
    await open(ollama4k());
    await turn([...FOREIGN.slice(0, 3), { role: 'assistant', content: '', calls: [] }]);
    expect(bench.fake.count()).toBe(2);
  });

  test('a user who speaks right after a result is heard by Mistral, too', async () => {
    await open(mistral());
    for (let n = 0; n < 2; n++) {
      await answered(bench.client, request([...FOREIGN.slice(0, 3), { role: 'user', content: 'Well?' }]));
    }
    expect(bench.fake.count()).toBe(3);
    expect(lastMessages().map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'tool',
      'assistant',
      'user',
    ]);
  });
});

describe('what comes in pieces', () => {
  const besides = (...deltas: object[]) => {
    const answer = createAnswer();
    for (const delta of deltas) answer.add({ choices: [{ delta }] });
    return answer.complete().besides;
  };

  test('is put together: texts, and the items of lists', () => {
    expect(
      besides(
        { role: 'assistant', content: '', reasoning: 'I ', annotations: [], refusal: null },
        {
          reasoning: 'think',
          reasoning_details: [{ type: 'reasoning.text', index: 0, text: 'I ', format: 'a' }],
        },
        { reasoning_details: [{ type: 'reasoning.text', index: 0, text: 'think', signature: null }] },
        { reasoning_details: [{ type: 'reasoning.text', index: 0, text: '', signature: 'sig' }] },
        { reasoning_details: [{ type: 'reasoning.encrypted', id: 'x', data: 'AA' }] },
        { reasoning_details: [{ type: 'reasoning.encrypted', id: 'y', data: 'BB' }] },
      ).message,
    ).toEqual({
      reasoning: 'I think',
      reasoning_details: [
        { type: 'reasoning.text', index: 0, text: 'I think', format: 'a', signature: 'sig' },
        { type: 'reasoning.encrypted', id: 'x', data: 'AA' },
        { type: 'reasoning.encrypted', id: 'y', data: 'BB' },
      ],
    });
  });

  test('belongs to the calls that can be made', () => {
    const call = (index: number, name: string, more: object = {}) => ({
      tool_calls: [
        { index, id: `c${index}`, type: 'function', function: { name, arguments: '{}' }, ...more },
      ],
    });
    expect(besides(call(0, ''), call(1, 'a'), call(2, 'b', { extra_content: { x: 1 } })).calls).toEqual([
      {},
      { extra_content: { x: 1 } },
    ]);
  });
});

test('the echo of a message is written for those who sent it, and for nobody else', () => {
  const call = { id: 'abcdefgh1', name: 'look_up', arguments: '{}' };
  const echo: Echo = { server: 'here', model: 'm', message: { reasoning_content: 'x' } };
  const message: ModelMessage = { role: 'assistant', content: 'I look.', calls: [call], echo };
  const textFor = (model: string) =>
    chatBody({
      api: 'chat',
      isToolsOrReasoning: false,
      parameters: { model, stream: true },
      messages: [message],
      tools: [],
      sendsImages: true,
      echoesTo: { server: 'here', model },
    }).text;
  expect(textFor('m')).toContain('"reasoning_content":"x"');
  expect(textFor('other')).not.toContain('reasoning_content');
});
