/** Names and ids that a model made up go back in a form that every server takes. */
import fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import type { ModelMessage } from '../../src/core/model.js';
import { calledName, fits, sentId, sentName } from '../../src/models/history.js';
import { openai } from '../fakes/model-servers/openai.js';
import type { ModelServer } from '../fakes/model-servers/server.js';
import { answered, ask, type Bench, LOOK_UP, openBench } from './helpers.js';

let bench: Bench;
afterEach(async () => {
  await bench?.fake.close();
});

const OFFERED = new Set(['look_up', 'mcp_a-b_c']);
const ODD = [
  'functions.x',
  'x<|channel|>commentary',
  ' look  up ',
  'n'.repeat(80),
  'naïve',
  '…',
  '<|x|>',
  ':0',
  'a/b',
];

describe('the name of a call', () => {
  test.each([
    'look_up',
    'functions.look_up',
    'functions.look_up:0',
    'look_up:12',
    'look_up<|channel|>commentary',
    'functions.look_up<|channel|>json',
    'default_api.look_up',
    'tools.look_up',
    ' "look_up" ',
    '`look_up`',
    'look_up<\uff5ctool\u2581sep\uff5c>',
  ])('%j means the tool that is offered', (name) => expect(calledName(name, OFFERED)).toBe('look_up'));

  test.each([
    ['functions.other', 'other'],
    ['evil.look_up', 'evil_look_up'],
    ['Look_Up', 'Look_Up'],
    ['look', 'look'],
    ['other<|channel|>commentary', 'other'],
  ])('%j is none that is offered', (name, sent) => expect(calledName(name, OFFERED)).toBe(sent));

  test('fits whatever it was, is the same each time, and stays where it fits', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom(...ODD)), (name) => {
        for (const form of [sentName, sentId]) {
          expect(fits(form(name))).toBe(true);
          expect(form(name)).toBe(form(name));
          if (fits(name)) expect(form(name)).toBe(name);
        }
        expect(fits(calledName(name, OFFERED))).toBe(true);
      }),
    );
  });

  test('two ids stay two', () => {
    expect(new Set(['a b', 'a  b', 'a.b', '', 'ü'].map(sentId)).size).toBe(5);
  });
});

const strict: ModelServer = { name: 'strict', rules: () => null };

/** As an older version stored it. */
function storedWith(name: string, id: string): ModelMessage[] {
  return [
    { role: 'user', content: 'What is tea?' },
    { role: 'assistant', content: '', calls: [{ id, name, arguments: '{}' }] },
    { role: 'tool', callId: id, content: 'There is no such tool.' },
    { role: 'user', content: 'And now?' },
  ];
}

describe('a strict server', () => {
  test.each(ODD)('takes a history with a call of %j again', async (name) => {
    for (const rules of [strict, openai(), openai({ responses: false })]) {
      bench = await openBench('Tea.', {}, rules);
      const request = { messages: storedWith(name, 'functions.x:0'), tools: [LOOK_UP] };
      expect((await answered(bench.client, request)).text).toBe('Tea.');
      await bench.fake.close();
    }
  });

  test('is told a call in words under a name that fits, where it takes no calls', async () => {
    const rules: ModelServer = {
      name: 'no calls',
      rules: ({ tools }) =>
        tools === undefined
          ? null
          : { status: 400, body: { error: { message: 'small does not support tools' } } },
    };
    bench = await openBench('Tea.', {}, rules);
    await answered(bench.client, { messages: storedWith('functions.x', 'a.1'), tools: [LOOK_UP] });
    const sent = JSON.stringify(bench.fake.requests.at(-1)?.body);
    expect(sent).toContain('[Called functions_x with {}]');
    expect(sent).toContain('functions_x\\">');
    expect(sent).not.toContain('functions.x');
  });

  test('gets back the ids and names of its own answer as they were made to fit, its items too', async () => {
    const calls = [
      { id: 'functions.look_up:0', name: 'functions.look_up', arguments: '{}' },
      { id: 'b', name: 'made<|channel|>up', arguments: '{}' },
    ];
    bench = await openBench(
      ({ messages }) => (messages.at(-1)?.role === 'tool' ? 'Tea.' : { calls }),
      {},
      openai(),
    );
    const first = await answered(bench.client, ask('Tea?', { tools: [LOOK_UP] }));
    expect(first.calls.map(({ name }) => name)).toEqual(['look_up', 'made']);
    expect(first.calls.every(({ id }) => fits(id))).toBe(true);
    const messages: ModelMessage[] = [
      { role: 'user', content: 'Tea?' },
      { role: 'assistant', content: '', calls: first.calls, ...(first.echo && { echo: first.echo }) },
      ...first.calls.map(({ id }): ModelMessage => ({ role: 'tool', callId: id, content: 'ok' })),
    ];
    expect((await answered(bench.client, { messages, tools: [LOOK_UP] })).text).toBe('Tea.');
    const input = bench.fake.requests.at(-1)?.raw.input as {
      type?: string;
      name?: string;
      call_id?: string;
    }[];
    const sent = input.filter(({ type }) => type === 'function_call');
    expect(sent.map(({ name }) => name)).toEqual(['look_up', 'made']);
    expect(sent.map(({ call_id }) => call_id)).toEqual(first.calls.map(({ id }) => id));
  });
});
