/** What a server wants back is in the history, two turns later and after a restart: the real client over the real store. */

import { afterEach, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { createOpenAiModel } from '../../src/models/openai.js';
import { ServerWays } from '../../src/models/server-ways.js';
import { type FakeModel, lastUserText, startFakeModel } from '../fakes/model.js';
import { deepseek } from '../fakes/model-servers/deepseek.js';
import { gemini3 } from '../fakes/model-servers/gemini3.js';
import { kimi } from '../fakes/model-servers/kimi.js';
import { type Workbench, workbench } from '../harness/conversation.js';
import { quietLog } from '../harness/quiet.js';
import { straight } from '../harness/straight.js';
import { memoryStorage } from '../models/helpers.js';

let fake: FakeModel;
let bench: Workbench;
afterEach(async () => {
  await bench.close();
  await fake.close();
});

test.each([
  ['DeepSeek', deepseek],
  ['Kimi', kimi],
  ['Gemini 3', gemini3],
])('%s takes every turn of a conversation with tools', async (_name, server) => {
  fake = await startFakeModel({
    server: server(),
    reply: (body) =>
      body.messages.at(-1)?.role === 'tool'
        ? `noted: ${lastUserText(body)}`
        : {
            text: 'I write it down.',
            reasoning: 'nobody may read this',
            calls: [
              { name: 'write_memory', arguments: { scope: 'chat_daily', content: lastUserText(body) } },
            ],
          },
  });
  bench = await workbench({
    memoryTools: true,
    model: createOpenAiModel({
      outward: straight,
      ...{ server: { baseUrl: fake.url, apiKey: null, name: 'm' }, clock: systemClock, log: quietLog },
      ...{ maxOutputTokens: 500, timeoutSeconds: 60, maxAttempts: 1 },
      ways: new ServerWays(memoryStorage(), quietLog),
      contextTokens: () => null,
      tellsWindow: async () => null,
    }),
  });
  for (const text of ['one', 'two', 'three']) {
    await bench.say(text);
    await bench.settled();
  }
  const before = bench.texts();
  bench = await bench.die();
  await bench.say('four');
  await bench.settled();
  expect([...before, ...bench.texts()]).toEqual(['noted: one', 'noted: two', 'noted: three', 'noted: four']);
  expect(JSON.stringify(bench.sent)).not.toContain('nobody may read');
  // Nothing was refused, not even once.
  expect(fake.count()).toBe(8);
});
