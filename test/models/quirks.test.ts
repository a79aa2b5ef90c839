import { describe, expect, test } from 'vitest';
import { createQuirkStore, type QuirkStore } from '../../src/models/quirk-store.js';
import { refusedParameter } from '../../src/models/quirks.js';
import type { ChatRequest } from '../../src/models/request.js';
import { manualClock } from '../fakes/clock.js';
import { keptLog, memoryQuirks } from './helpers.js';

const sent: ChatRequest = {
  api: 'chat',
  parameters: {
    model: 'm',
    stream: true,
    stream_options: { include_usage: true },
    max_tokens: 500,
    temperature: 0.5,
  },
  messages: [{ role: 'user', content: 'hi' }],
  tools: [{ name: 'look_up', description: '', parameters: {} }],
  sendsImages: true,
  echoesTo: null,
  isToolsOrReasoning: false,
};
const toolless: ChatRequest = { ...sent, tools: [] };
const afterCalls: ChatRequest = {
  ...toolless,
  messages: [
    { role: 'assistant', content: '', calls: [{ id: 'a', name: 'x', arguments: '{}' }] },
    { role: 'tool', callId: 'a', content: 'y' },
  ],
};

/** The words are those of real servers, shortened. */
describe('what a refusal is about', () => {
  test.each([
    [
      400,
      'max_tokens',
      "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
      'max_tokens',
    ],
    [
      400,
      undefined,
      'max_tokens is too large: 500. This model supports at most 100 completion tokens',
      'max_tokens',
    ],
    [
      400,
      'temperature',
      "Unsupported value: 'temperature' does not support 0.5 with this model when using tools.",
      'temperature',
    ],
    [422, undefined, 'temperature: must be at most 0', 'temperature'],
    [400, undefined, 'Unrecognized request argument supplied: stream_options', 'stream_options'],
    [422, 'stream_options', 'stream_options: Extra inputs are not permitted', 'stream_options'],
    [400, 'stream', 'Your organization must be verified to stream this model.', 'stream'],
    [400, undefined, 'Streaming is not supported for this model', 'stream'],
    [400, undefined, 'registry.ollama.ai/library/gemma:latest does not support tools', 'tools'],
    [404, undefined, 'No endpoints found that support tool use.', 'tools'],
    [
      400,
      undefined,
      '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
      'tools',
    ],
    [500, undefined, 'tools param requires --jinja flag', 'tools'],
    [400, undefined, 'Function calling is not enabled for models/gemma', 'tools'],
    [400, undefined, '`tool calling` is not supported with this model', 'tools'],
    [422, 'tools', 'tools: Extra inputs are not permitted', 'tools'],
    [400, undefined, 'Unrecognized request argument supplied: tools', 'tools'],
  ])('%s %s %j: %s', (status, param, words, quirk) => {
    expect(refusedParameter(sent, { kind: 'answered', status, param, words })).toBe(quirk);
  });

  test.each([
    [400, undefined, 'The model is not there'],
    [401, undefined, 'temperature'],
    [500, undefined, 'The function is temporarily unavailable'],
    [500, undefined, 'temperature'],
    [400, undefined, "Invalid schema for function 'look_up': None is not of type 'array'."],
    [400, 'messages.[1].role', "messages with role 'tool' must be a response to a preceding message"],
    [
      400,
      undefined,
      'Could not finish the message because max_tokens was reached. Please try again with higher max_tokens.',
    ],
  ])('%s %s %j is about nothing that can be left out', (status, param, words) => {
    expect(refusedParameter(sent, { kind: 'answered', status, param, words })).toBe(null);
  });

  test('only what was sent can be refused', () => {
    const words =
      'max_completion_tokens, stream_options, temperature, streaming not supported; does not support tools';
    const bare: ChatRequest = {
      api: 'chat',
      parameters: { model: 'm', stream: false },
      messages: [],
      tools: [],
      sendsImages: true,
      echoesTo: null,
      isToolsOrReasoning: false,
    };
    expect(refusedParameter(bare, { kind: 'answered', status: 400, words })).toBe(null);
  });

  test('calls in the history, where none are offered', () => {
    const words = 'Anthropic expects the `tools=` param to be passed in.';
    expect(refusedParameter(afterCalls, { kind: 'answered', status: 400, words })).toBe(
      'calls_without_tools',
    );
    expect(refusedParameter(toolless, { kind: 'answered', status: 400, words })).toBe(null);
  });
});

async function refused(store: QuirkStore, key: string) {
  await store.loaded();
  return new Set(store.get(key)?.refused);
}

describe('the store of quirks', () => {
  test('keeps them over a restart, by key, beside what others wrote', async () => {
    const quirks = memoryQuirks('{"other":{"since":1,"refused":["tools"]}}');
    const clock = manualClock();
    await createQuirkStore(quirks, clock, keptLog()).add('a', 'stream_options');
    const again = createQuirkStore(quirks, clock, keptLog());
    await again.add('a', 'temperature');
    expect(await refused(again, 'a')).toEqual(new Set(['stream_options', 'temperature']));
    expect(await refused(again, 'b')).toEqual(new Set());
    expect(quirks.read()).toContain('"other":{"since":1');
  });

  test('forgets after a week, and when told', async () => {
    const quirks = memoryQuirks();
    const clock = manualClock();
    const quirkStore = createQuirkStore(quirks, clock, keptLog());
    await quirkStore.add('a', 'tools');
    await clock.advance(6 * 24 * 3600_000);
    expect(await refused(quirkStore, 'a')).toEqual(new Set(['tools']));
    await clock.advance(2 * 24 * 3600_000);
    expect(await refused(quirkStore, 'a')).toEqual(new Set());

    await quirkStore.add('b', 'tools');
    await quirkStore.set('b', null);
    expect(await refused(createQuirkStore(quirks, clock, keptLog()), 'b')).toEqual(new Set());
  });

  test.each(['', 'not json', '[1]', '{"a":7}', '{"a":{"since":"x","refused":["tools"]}}'])(
    'is empty where %j is stored',
    async (stored) => {
      const quirkStore = createQuirkStore(memoryQuirks(stored), manualClock(), keptLog());
      expect(await refused(quirkStore, 'a')).toEqual(new Set());
    },
  );

  test('works on, and says so, where nothing can be read or written', async () => {
    const log = keptLog();
    const broken = () => Promise.reject(new Error('disk full'));
    const quirkStore = createQuirkStore({ load: broken, save: broken }, manualClock(), log);
    await quirkStore.add('a', 'tools');
    expect(await refused(quirkStore, 'a')).toEqual(new Set(['tools']));
    expect(log.lines.join()).toContain('disk full');
  });
});
