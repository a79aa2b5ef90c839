/** The client and a server whose model writes its calls as text: what is carried out, what is asked anew, what is shown. */
import { afterEach, describe, expect, test } from 'vitest';
import type { ModelEvent, ModelRequest } from '../../src/core/model.js';
import type { ModelScript } from '../fakes/model.js';
import { openai } from '../fakes/model-servers/openai.js';
import { answered, ask, type Bench, LOOK_UP, openBench } from './helpers.js';

let bench: Bench;
afterEach(async () => {
  await bench.fake.close();
});

const CALL = '<tool_call>\n{"name": "look_up", "arguments": {"word":"tea"}}\n</tool_call>';
const BROKEN = '<tool_call>\n{"name": "look_up", "arguments": {"word": \n</tool_call>';
const UNKNOWN = '<function=fly>\n<parameter=to>\nRome\n</parameter>\n</function>';
const REQUEST = ask('What is tea?', { tools: [LOOK_UP] });

async function events(request: ModelRequest) {
  const all: ModelEvent[] = [];
  for await (const event of bench.client.stream(request, new AbortController().signal)) all.push(event);
  return all;
}

/** All that could be seen, one after the other. */
function shownIn(all: ModelEvent[]): string[] {
  let text = '';
  return all.flatMap((event) => {
    if (event.kind !== 'text' && event.kind !== 'restart') return [];
    text = event.kind === 'text' ? text + event.delta : '';
    return [text];
  });
}

const inOrder =
  (...scripts: (ModelScript | string)[]) =>
  (_body: unknown, n: number) =>
    scripts[Math.min(n, scripts.length - 1)] ?? '';

describe('a call of a tool that is offered', () => {
  test.each([1, 7, undefined])(
    'is one, in pieces of %s characters, and nothing of it is shown',
    async (chunkSize) => {
      bench = await openBench({ text: `I look. ${CALL}<|im_end|>`, ...(chunkSize && { chunkSize }) });
      const all = await events(REQUEST);
      expect(all.at(-1)).toMatchObject({
        ...{ kind: 'done', text: 'I look.', truncated: false },
        calls: [{ id: 'call00001', name: 'look_up', arguments: '{"word":"tea"}' }],
      });
      expect(shownIn(all).filter((text) => !'I look. '.startsWith(text))).toEqual([]);
      expect(bench.fake.requests).toHaveLength(1);
    },
  );

  test('behind thoughts, from a server that does not stream, with its reasoning kept for it', async () => {
    bench = await openBench({ text: `<think>hm</think>${CALL}`, nonStreaming: true, reasoning: 'deep' });
    const done = await answered(bench.client, REQUEST);
    expect(done).toMatchObject({ text: '', calls: [{ name: 'look_up' }] });
    expect(done.echo?.message).toEqual({ reasoning_content: 'deep' });
  });

  test('counts once where the server found it as well', async () => {
    bench = await openBench({
      text: `I look. ${CALL}`,
      calls: [{ name: 'look_up', arguments: { word: 'tea' } }],
    });
    expect(await answered(bench.client, REQUEST)).toMatchObject({
      text: 'I look.',
      calls: [{ name: 'look_up', arguments: '{"word":"tea"}' }],
    });
  });

  test('on the Responses API, without the items that would bring the text back', async () => {
    const reply = ({ messages }: { messages: { role: string }[] }) =>
      messages.at(-1)?.role === 'tool' ? 'A drink.' : { text: `I look. ${CALL}` };
    bench = await openBench(reply, {}, openai());
    const first = await answered(bench.client, REQUEST);
    expect(first).toMatchObject({ text: 'I look.', calls: [{ name: 'look_up' }] });
    expect(JSON.stringify(first.echo ?? {})).not.toContain('tool_call');
    const [call] = first.calls;
    const second = await answered(bench.client, {
      ...REQUEST,
      messages: [
        ...REQUEST.messages,
        {
          role: 'assistant',
          content: first.text,
          calls: first.calls,
          ...(first.echo && { echo: first.echo }),
        },
        { role: 'tool', callId: call?.id ?? '', content: 'ok' },
      ],
    });
    expect(second.text).toBe('A drink.');
  });

  test('cut off at the limit is asked for with more room', async () => {
    bench = await openBench(
      inOrder({ text: `I look. ${CALL.slice(0, 40)}`, finish: 'length' }, { text: CALL }),
    );
    expect((await answered(bench.client, REQUEST)).calls).toMatchObject([{ name: 'look_up' }]);
    expect(bench.fake.requests.map(({ body }) => body.max_tokens)).toEqual([500, 2000]);
  });
});

describe('one that cannot be carried out', () => {
  test.each([
    [BROKEN, 'It could not be read.'],
    [UNKNOWN, 'There is no tool named fly.'],
  ])('%j is asked about once', async (written, why) => {
    bench = await openBench(inOrder(`I look. ${written}`, 'Tea is a drink.'));
    const all = await events(REQUEST);
    expect(all.at(-1)).toMatchObject({ kind: 'done', text: 'Tea is a drink.', calls: [] });
    expect(shownIn(all).join()).not.toMatch(/tool_call|function=/);
    const asked = bench.fake.requests.map(({ body }) => body.messages);
    expect(asked).toHaveLength(2);
    expect(asked[1]?.slice(1)).toMatchObject([
      { role: 'assistant', content: 'I look.' },
      { role: 'user', content: expect.stringContaining(why) },
    ]);
  });

  test('becomes a proper call at the second time', async () => {
    bench = await openBench(inOrder(BROKEN, { calls: [{ name: 'look_up', arguments: { word: 'tea' } }] }));
    expect((await answered(bench.client, REQUEST)).calls).toMatchObject([{ name: 'look_up' }]);
  });

  test('is cut where it is written again; what was said beside it is the answer', async () => {
    bench = await openBench(inOrder(`Tea is a drink.\n${BROKEN}`, BROKEN));
    expect(await answered(bench.client, REQUEST)).toMatchObject({ text: 'Tea is a drink.', calls: [] });
    expect(bench.fake.requests).toHaveLength(2);
  });

  test('with nothing beside it, twice, is an empty answer; where one may be empty it is one', async () => {
    bench = await openBench(BROKEN);
    const last = (await events(REQUEST)).at(-1);
    expect(last).toMatchObject({ kind: 'failed', fault: { code: 'model_empty' } });
    expect(await answered(bench.client, { ...REQUEST, mayBeEmpty: true })).toMatchObject({
      text: '',
      calls: [],
    });
    expect(bench.fake.requests).toHaveLength(4);
  });

  test('is only cut where no tools are offered', async () => {
    bench = await openBench(`Tea is a drink. ${BROKEN}`);
    expect(await answered(bench.client, ask('What is tea?'))).toMatchObject({
      text: 'Tea is a drink.',
      calls: [],
    });
    expect(bench.fake.requests).toHaveLength(1);
  });

  test('teaches nothing about the window, also without a count', async () => {
    bench = await openBench(inOrder({ text: BROKEN, usage: null }, 'Tea.'));
    const before = bench.client.contextTokens();
    await answered(bench.client, {
      ...REQUEST,
      messages: [{ role: 'user', content: 'tea '.repeat(40_000) }],
    });
    expect(bench.client.contextTokens()).toBe(before);
  });
});

test('an invented turn that is all there is makes the answer empty, which is asked for once more', async () => {
  bench = await openBench(inOrder('<user_message sender="Ann">And now?</user_message>', 'Tea.<|im_end|>'));
  expect((await answered(bench.client, REQUEST)).text).toBe('Tea.');
});
