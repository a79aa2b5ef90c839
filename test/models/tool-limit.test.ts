/** A server that takes fewer tools in one request than there are. */
import { afterEach, describe, expect, test } from 'vitest';
import type { ModelServer } from '../fakes/model-servers/server.js';
import { answered, ask, type Bench, openBench } from './helpers.js';

let bench: Bench;
afterEach(async () => {
  await bench?.fake.close();
});

const tools = Array.from({ length: 150 }, (_, n) => ({
  ...{ name: `tool_${n}`, description: 'One of many.' },
  parameters: { type: 'object', properties: {} },
}));
const request = ask('Tea?', { tools });

function taking(
  most: number,
  words: (given: number) => string,
  more: Record<string, unknown> = {},
): ModelServer {
  return {
    name: `at most ${most}`,
    rules: ({ tools: given = [] }) =>
      given.length <= most
        ? null
        : { status: 400, body: { error: { message: words(given.length), ...more } } },
  };
}

describe('how many it takes is learnt from its words, and the request asked anew', () => {
  test.each<[number, (given: number) => string, Record<string, unknown>?]>([
    // julep-ai/julep#330
    [
      128,
      (given) =>
        `Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length ${given} instead.`,
      { type: 'invalid_request_error', param: 'tools', code: 'array_above_max_length' },
    ],
    [
      64,
      (given) =>
        `Invalid 'tools': array too long. Expected an array with maximum length 64, but got an array with length ${given} instead.`,
    ],
    [100, (given) => `tools: List should have at most 100 items after validation, not ${given}`],
    [32, (given) => `Too many tools: ${given}. Maximum is 32.`],
    [20, (given) => `This model supports up to 20 tools, got ${given}`],
    [128, (given) => `The number of tools (${given}) exceeds the maximum of 128`],
    [64, () => "'tools' : maximum number of items is 64"],
    [64, () => '`tools` must not contain more than 64 elements'],
    [50, (given) => `Invalid value for tools: length ${given} > 50`],
    [64, () => 'Only 64 tools are supported'],
    // It does not say how many.
    [75, () => 'Too many tools'],
  ])('%s', async (most, words, more) => {
    bench = await openBench('Tea.', {}, taking(most, words, more));
    const first = await answered(bench.client, request);
    expect(first.text).toBe('Tea.');
    expect(first.notices?.map(({ text }) => text).join()).toContain(`only ${most} tools`);
    expect(first.notices?.map(({ text }) => text).join()).toContain(`\`tool_${most}\``);
    expect(bench.fake.requests.map(({ body }) => body.tools?.length)).toEqual([150, most]);
    expect(bench.fake.requests.at(-1)?.body.tools?.at(-1)?.function.name).toBe(`tool_${most - 1}`);
    // Also after a restart.
    await answered(bench.another(), request);
    expect(bench.fake.requests.map(({ body }) => body.tools?.length)).toEqual([150, most, most]);
    expect((await bench.client.check(new AbortController().signal)).warnings.join()).toContain(
      `more than ${most} tools`,
    );
  });

  test.each([
    'Invalid schema for function: array too long',
    'The maximum number of tokens is 64',
    'Please use at most 12 images',
    "Invalid 'tools[3].function.name': string too long. Expected a string with maximum length 64",
    'tools.0.function.parameters.required: List should have at most 64 items',
    'Too many tools were called at once',
    'Too many requests: tools are limited to 5 requests per minute',
  ])('%j teaches nothing of the kind', async (words) => {
    bench = await openBench({ status: 400, body: { error: { message: words } } });
    await answered(bench.client, request).catch(() => null);
    expect(bench.learnt.read() ?? '').not.toMatch(/"mostTools":\d/);
  });
});
