/** Models whose template knows no system messages, or no results of tools. */
import { afterEach, expect, test } from 'vitest';
import type { ModelMessage } from '../../src/core/model.js';
import { gemma } from '../fakes/model-servers/gemma.js';
import { answered, type Bench, LOOK_UP, openBench, turnWithCalls } from './helpers.js';

let bench: Bench;
afterEach(async () => {
  await bench.fake.close();
});

const SYSTEM: ModelMessage = { role: 'system', content: 'Be kind.' };
const sentLast = () => bench.fake.requests.at(-1)?.body.messages ?? [];

test.each(['vLLM', 'llama.cpp', 'LM Studio', 'TGI'] as const)(
  'what stands in a system message stands before the first words of a user, learnt once (%s)',
  async (on) => {
    bench = await openBench('Tea.', {}, gemma({ on }));
    const messages: ModelMessage[] = [SYSTEM, { role: 'user', content: 'hi' }];
    const picture = { mimeType: 'image/png', bytes: Buffer.from('p') } as const;
    expect((await answered(bench.client, { messages, tools: [] })).text).toBe('Tea.');
    expect(sentLast()).toEqual([{ role: 'user', content: 'Be kind.\n\nhi' }]);
    const shown: ModelMessage[] = [SYSTEM, { role: 'user', content: 'see', images: [picture] }];
    expect((await answered(bench.another(), { messages: shown, tools: [] })).text).toBe('Tea.');
    expect(sentLast()).toMatchObject([{ content: 'Be kind.\n\nsee', images: [{ mimeType: 'image/png' }] }]);
    expect(bench.fake.count()).toBe(3);
  },
);

test('a conversation that the persona began, with calls, is told so that sides take turns, and tools are still offered', async () => {
  bench = await openBench(
    ({ messages }) =>
      /Called look_up/.test(JSON.stringify(messages))
        ? 'Found.'
        : { calls: [{ name: 'look_up', arguments: '{}' }] },
    {},
    gemma({ on: 'llama.cpp' }),
  );
  const asked: ModelMessage[] = [
    SYSTEM,
    { role: 'assistant', content: 'Hello!', calls: [] },
    { role: 'user', content: 'look' },
  ];
  const { messages, last } = await turnWithCalls(
    bench.client,
    (all) => ({ messages: all, tools: [LOOK_UP] }),
    asked,
  );
  expect(last.text).toBe('Found.');
  expect(sentLast().map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant', 'user']);
  expect(sentLast()[0]?.content).toMatch(/^Be kind\./);
  expect(bench.fake.requests.at(-1)?.body.tools).toHaveLength(1);
  const before = bench.fake.count();
  await answered(bench.client, {
    messages: [...messages, { role: 'user', content: 'more' }],
    tools: [LOOK_UP],
  });
  expect(bench.fake.count()).toBe(before + 1);
});
