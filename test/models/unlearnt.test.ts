/** What a refusal teaches, what it does not, and how it is forgotten again. */
import { afterEach, describe, expect, test } from 'vitest';
import type { ModelRequest } from '../../src/core/model.js';
import type { ModelReply } from '../fakes/model.js';
import { groq } from '../fakes/model-servers/groq.js';
import { openai } from '../fakes/model-servers/openai.js';
import { refuse } from '../fakes/model-servers/server.js';
import { answered, ask, type Bench, fault, LOOK_UP, openBench } from './helpers.js';

let bench: Bench;
afterEach(async () => {
  await bench.fake.close();
});

const HOUR = 60 * 60_000;
const withTools = () => ask('?', { tools: [LOOK_UP] });
const hasTools = () => bench.fake.requests.at(-1)?.body.tools !== undefined;

/** The back-off of one retry passes meanwhile. */
async function afterRetry(request: ModelRequest) {
  const event = answered(bench.client, request);
  await bench.clock.asleep(500);
  await bench.clock.advance(500);
  return event;
}

describe('a refusal that is sampling teaches nothing, and is asked anew', () => {
  test.each(['call', 'arguments'] as const)('a wrong %s (Groq)', async (wrong) => {
    bench = await openBench('Tea.', {}, groq({ fails: (n) => n === 0, wrong }));
    expect((await afterRetry(withTools())).text).toBe('Tea.');
    expect(hasTools()).toBe(true);
    expect(bench.learnt.read()).toBeNull();
  });

  test('content that is refused on the Responses API', async () => {
    let refusals = 1;
    const reply: ModelReply = () => {
      if (bench.fake.requests.at(-1)?.path !== '/responses' || refusals-- <= 0) return 'Tea.';
      return refuse(400, {
        message: 'Invalid prompt: your prompt was flagged as potentially violating our usage policy.',
        type: 'invalid_request_error',
        param: 'input',
        code: 'invalid_prompt',
      });
    };
    bench = await openBench(reply, {}, openai());
    expect((await afterRetry(withTools())).text).toBe('Tea.');
    expect(bench.fake.requests.map(({ path }) => path).slice(-2)).toEqual(['/responses', '/responses']);
    expect(hasTools()).toBe(true);
    expect(bench.learnt.read()).not.toContain('"responses"');
  });
});

test('what was left out in vain was not the reason', async () => {
  const message = 'small does not support tools';
  bench = await openBench(refuse(400, { message }));
  expect((await fault(bench.client, withTools())).code).toBe('model_refused');
  expect(bench.fake.count()).toBe(2);
  bench.fake.reply('Tea.');
  expect((await answered(bench.client, withTools())).notices).toBeUndefined();
  expect(hasTools()).toBe(true);
});

describe('what was refused is tried again after an hour', () => {
  const NO_TOOLS = refuse(400, { message: 'small does not support tools' });

  test('and given up for another hour where it is refused again', async () => {
    bench = await openBench((body) => (body.tools ? NO_TOOLS : 'Tea.'));
    const counts: number[] = [];
    for (let n = 0; n < 5; n++) {
      expect((await answered(bench.client, withTools())).notices).toHaveLength(1);
      counts.push(bench.fake.count());
      await bench.clock.advance(HOUR / 2);
    }
    expect(counts).toEqual([2, 3, 5, 6, 8]);
  });

  test('and its success forgets the refusal, over a restart too', async () => {
    bench = await openBench((body) => (body.tools ? NO_TOOLS : 'Tea.'));
    await answered(bench.client, withTools());
    bench.fake.reply('Tea.');
    await answered(bench.client, withTools());
    expect(hasTools()).toBe(false);
    await bench.clock.advance(HOUR);
    // A request that has no tools says nothing of them.
    await answered(bench.client, ask('?'));
    expect((await answered(bench.client, withTools())).notices).toBeUndefined();
    expect(hasTools()).toBe(true);
    await answered(bench.another(), withTools());
    expect(hasTools()).toBe(true);
  });

  test('pictures, and the Responses API', async () => {
    const shown: ModelRequest = {
      messages: [
        { role: 'user', content: 'see', images: [{ mimeType: 'image/png', bytes: Buffer.from('p') }] },
      ],
      tools: [],
    };
    bench = await openBench('Tea.');
    bench.fake.settings.images = 'refused';
    await answered(bench.client, shown);
    bench.fake.settings.images = 'taken';
    await bench.clock.advance(HOUR);
    await answered(bench.client, ask('?'));
    await answered(bench.client, shown);
    await answered(bench.client, shown);
    expect(bench.fake.requests.map(({ body }) => body.messages[0]?.images !== undefined)).toEqual([
      ...[true, false, false],
      ...[true, true],
    ]);
    await bench.fake.close();

    bench = await openBench('Tea.', {}, { ...openai(), hasResponses: true });
    let gone = true;
    const { reply } = bench.fake;
    reply(() => (gone && bench.fake.requests.at(-1)?.path === '/responses' ? { status: 404 } : 'Tea.'));
    await answered(bench.client, withTools());
    expect(bench.fake.requests.at(-1)?.path).toBe('/chat/completions');
    gone = false;
    await bench.clock.advance(HOUR);
    await answered(bench.client, withTools());
    expect(bench.fake.requests.at(-1)?.path).toBe('/responses');
    expect(bench.learnt.read()).not.toContain('"responses"');
  });
});
