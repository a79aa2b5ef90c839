/** Silence within an answer, with a body that is fed by hand, so that no real time decides. */

import { Readable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import type { Answer } from '../../src/models/answer.js';
import { createAnswer } from '../../src/models/answer.js';
import { attempt } from '../../src/models/attempt.js';
import { createResponsesAnswer } from '../../src/models/responses.js';
import { manualClock } from '../fakes/clock.js';

/** An answer whose pieces arrive when the test says so; `fed` resolves when the piece has been taken. */
function fedAnswer() {
  let wanted: (() => void) | undefined;
  const body = new Readable({ highWaterMark: 0, read: () => wanted?.() });
  body.on('error', () => {});
  async function raw(text: string): Promise<void> {
    const taken = new Promise<void>((resolve) => {
      wanted = resolve;
    });
    body.push(text);
    await taken;
  }
  return {
    answer: body,
    end: () => body.push(null),
    break: () => body.destroy(new Error('aborted')),
    raw,
    event: (event: object) => raw(`data: ${JSON.stringify(event)}\n\n`),
    fed: (delta: object, finish: string | null = null) =>
      raw(`data: ${JSON.stringify({ choices: [{ delta, finish_reason: finish }] })}\n\n`),
  };
}

async function answerOf(writing: AsyncGenerator<unknown, Answer>): Promise<Answer> {
  let next = await writing.next();
  while (!next.done) next = await writing.next();
  return next.value;
}

function begin(mostBytes = 2_000_000, reader = createAnswer) {
  const clock = manualClock();
  const fed = fedAnswer();
  let hungUp = false;
  const writing = attempt({
    post: async (_body, signal) => {
      signal.addEventListener('abort', () => {
        hungUp = true;
        fed.break();
      });
      return fed.answer;
    },
    body: { text: '{}', pictures: [] },
    answer: reader(),
    silenceMs: 60_000,
    mostBytes,
    shown: { text: '' },
    sent: { tools: [], messages: [] },
    before: '',
    clock,
    signal: new AbortController().signal,
  });
  const answer = answerOf(writing);
  answer.catch(() => undefined);
  return { clock, fed, answer, hungUp: () => hungUp };
}

test('a stream that is slow, but never silent for so long, is waited for', async () => {
  const { clock, fed, answer } = begin();
  for (const letter of 'tea') {
    await fed.fed({ content: letter });
    await clock.advance(59_000);
  }
  await fed.fed({}, 'stop');
  fed.end();
  expect((await answer).text).toBe('tea');
  expect(clock.sleeping()).toEqual([]);
});

test('silence is counted from the last piece, and the server is hung up on', async () => {
  const { clock, fed, answer, hungUp } = begin();
  await clock.advance(30_000);
  await fed.fed({ content: 'tea' });
  await clock.advance(59_999);
  expect(hungUp()).toBe(false);
  await clock.advance(1);
  expect(hungUp()).toBe(true);
  await expect(answer).rejects.toMatchObject({ details: { kind: 'silent', words: 'was silent for 60 s' } });
});

test('after the answer said that it is finished, neither silence nor a cut is of interest', async () => {
  const silent = begin();
  await silent.fed.fed({ content: 'tea' }, 'stop');
  await silent.clock.advance(60_000);
  expect((await silent.answer).text).toBe('tea');

  const cut = begin();
  await cut.fed.fed({ content: 'tea' }, 'stop');
  cut.fed.break();
  expect((await cut.answer).text).toBe('tea');
});

test('a long answer is looked at as it grows, not again for every piece of it', async () => {
  const answer = createAnswer();
  let looks = 0;
  const counted = {
    ...answer,
    visible() {
      looks++;
      return answer.visible();
    },
  };
  const pieces = 50_000;
  const lines = Array.from({ length: pieces }, (_, n) => {
    const finish_reason = n === pieces - 1 ? 'stop' : null;
    return `data: ${JSON.stringify({ choices: [{ delta: { content: 'a few words, ' }, finish_reason }] })}\n\n`;
  });
  const writing = attempt({
    post: async () => Readable.from([...lines, 'data: [DONE]\n\n'].map((line) => Buffer.from(line))),
    body: { text: '{}', pictures: [] },
    answer: counted,
    silenceMs: 60_000,
    mostBytes: 2_000_000,
    shown: { text: '' },
    sent: { tools: [], messages: [] },
    before: '',
    clock: manualClock(),
    signal: new AbortController().signal,
  });
  let written = '';
  let next = await writing.next();
  for (; !next.done; next = await writing.next()) {
    if (next.value.kind === 'text') written += next.value.delta;
  }
  expect(next.value.text).toBe('a few words, '.repeat(pieces));
  expect(written).toBe(next.value.text);
  expect(looks).toBeLessThan(2_000);
});

test.each([
  ['text', { content: 'x'.repeat(600) }],
  ['reasoning', { reasoning_content: 'x'.repeat(600) }],
  ['a call', { tool_calls: [{ index: 0, id: 'a', function: { name: 'n', arguments: 'x'.repeat(600) } }] }],
  ['calls without arguments', { tool_calls: Array(12).fill({ function: { name: 'n' } }) }],
  ['what comes along with a call', { tool_calls: [{ index: 0, id: 'a', signature: 'x'.repeat(600) }] }],
])('an answer that does not end is given up when it holds too much: %s', async (_what, delta) => {
  const { fed, answer, hungUp } = begin(1_000);
  await fed.fed(delta);
  expect(hungUp()).toBe(false);
  void fed.fed(delta);
  await expect(answer).rejects.toMatchObject({ details: { kind: 'endless' } });
  expect(hungUp()).toBe(true);
});

const chunk = (choice: object) => `data: ${JSON.stringify({ choices: [choice] })}\n\n`;
const HEARTBEATS: [string, string][] = [
  ['comments', ': OPENROUTER PROCESSING\n\n'],
  ['blank lines', '\n\n'],
  ['pings', 'event: ping\ndata: {"type": "ping"}\n\n'],
  ['pings that are no JSON', 'event: ping\ndata: ping\n\n'],
  ['events of nothing', 'data:\n\ndata: [PING]\n\n'],
  ['pings that are a word of JSON', 'data: "ping"\n\ndata: null\n\ndata: []\n\n'],
  ['empty deltas', chunk({ delta: {}, finish_reason: null })],
  ['deltas of a role', chunk({ delta: { role: 'assistant', content: '' } })],
  ['deltas of nothing', chunk({ delta: { content: null, reasoning_content: '', tool_calls: [] } })],
  ['deltas of blanks', chunk({ delta: { content: ' \n\u200b' } })],
  ['blanks of arguments', chunk({ delta: { tool_calls: [{ index: 0, function: { arguments: ' \n' } }] } })],
  ['no choices', 'data: {"choices": []}\n\n'],
  ['usage alone', 'data: {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 0}}\n\n'],
  ['a state', 'data: {"type": "response.in_progress", "response": {"status": "in_progress"}}\n\n'],
];

describe('heartbeats', () => {
  test.each(HEARTBEATS)('%s lengthen a wait, up to four times the silence that is borne', async (_, beat) => {
    const { clock, fed, answer, hungUp } = begin();
    await fed.fed({ content: 'tea' });
    for (let n = 1; n < 8; n++) {
      await clock.advance(30_000);
      await fed.raw(beat);
    }
    expect(hungUp()).toBe(false);
    await clock.advance(30_000);
    expect(hungUp()).toBe(true);
    await expect(answer).rejects.toMatchObject({
      details: { kind: 'silent', words: expect.stringContaining('for 240 s') },
    });
  });

  test.each([
    ['text', { content: 'a' }],
    ['reasoning', { reasoning_content: 'a' }],
    ['reasoning as parts', { reasoning_details: [{ type: 'reasoning.text', text: 'a' }] }],
    ['arguments of a call', { tool_calls: [{ index: 0, id: 'a', function: { name: 'n', arguments: '1' } }] }],
  ])('between %s that grows are borne as long as it grows', async (_, delta) => {
    const { clock, fed, answer } = begin();
    for (let n = 0; n < 40; n++) {
      await fed.raw(': ping\n\n');
      await clock.advance(50_000);
      if (n % 4 === 0) await fed.fed(delta);
    }
    await fed.fed({ content: 'tea' }, 'stop');
    fed.end();
    expect((await answer).text).toContain('tea');
  });

  test('in a flood end the request before it takes the time of others', async () => {
    const { fed, answer, hungUp } = begin(1_000);
    for (let n = 0; n < 15; n++) await fed.raw(': ping\n\n'.repeat(125));
    expect(hungUp()).toBe(false);
    void fed.raw(': ping\n\n'.repeat(251));
    await expect(answer).rejects.toMatchObject({ details: { kind: 'endless' } });
    expect(hungUp()).toBe(true);
  });

  test('of the Responses API are none of it either; what it writes is', async () => {
    const { clock, fed, answer, hungUp } = begin(2_000_000, createResponsesAnswer);
    for (let n = 0; n < 12; n++) {
      await fed.event({ type: 'response.in_progress', response: { status: 'in_progress' } });
      await clock.advance(50_000);
      if (n % 3 === 0) await fed.event({ type: 'response.function_call_arguments.delta', delta: '{' });
    }
    expect(hungUp()).toBe(false);
    for (let n = 0; n < 3; n++) {
      await fed.event({ type: 'response.reasoning_summary_text.delta', delta: '' });
      await clock.advance(50_000);
    }
    expect(hungUp()).toBe(true);
    await expect(answer).rejects.toMatchObject({ details: { kind: 'silent' } });
  });
});

describe('an answer that has said that it is finished', () => {
  const CALL = { tool_calls: [{ index: 0, id: 'a', function: { name: 'n', arguments: '{}' } }] };
  const completed = { type: 'response.completed', response: { status: 'completed', output: [] } };

  test.each([
    ['is silent', ''],
    ['goes on with heartbeats', ': ping\n\n'],
    ['goes on with empty choices', 'data: {"choices": []}\n\n'],
  ])('and then %s is waited for a moment only, for its usage', async (_, beat) => {
    const { clock, fed, answer, hungUp } = begin();
    await fed.fed({ content: 'tea' });
    await fed.fed(CALL, 'tool_calls');
    await fed.event({ choices: [], usage: { prompt_tokens: 7, completion_tokens: 2 } });
    if (beat !== '') await fed.raw(beat);
    await clock.advance(1_000);
    if (beat !== '') await fed.raw(beat);
    await clock.advance(1_000);
    expect(hungUp()).toBe(true);
    expect(await answer).toMatchObject({ text: 'tea', finish: 'tool_calls', usage: { inputTokens: 7 } });
    expect(clock.sleeping()).toEqual([]);
  });

  test('and then goes on with a flood, or a line without an end, is an answer', async () => {
    for (const rest of [': ping\n\n'.repeat(3_000), 'x'.repeat(20_000)]) {
      const { fed, answer } = begin(1_000);
      await fed.fed({ content: 'tea' }, 'stop');
      void fed.raw(rest);
      expect((await answer).text).toBe('tea');
    }
  });

  test('on the Responses API, too', async () => {
    const { clock, fed, answer } = begin(2_000_000, createResponsesAnswer);
    await fed.event({ type: 'response.output_text.delta', output_index: 0, delta: 'tea' });
    await fed.event(completed);
    await clock.advance(2_000);
    expect(await answer).toMatchObject({ text: 'tea', finish: 'stop' });
  });

  test('with each of its pieces is not over before the last', async () => {
    const { clock, fed, answer } = begin();
    for (const letter of 'tea') {
      await fed.fed({ content: letter }, 'stop');
      await clock.advance(1_200);
    }
    fed.end();
    expect((await answer).text).toBe('tea');
  });

  test('only by its mark for the end of the stream is one (Snowflake Cortex)', async () => {
    const { fed, answer } = begin();
    await fed.fed({ content: 'tea' });
    void fed.raw('data: [DONE]\n\n');
    expect(await answer).toMatchObject({ text: 'tea', finish: 'stop' });

    const called = begin();
    await called.fed.fed(CALL);
    void called.fed.raw('data: [DONE]\n\n');
    expect(await called.answer).toMatchObject({ calls: [{ name: 'n' }], finish: 'tool_calls' });
  });

  test('only by the end of its connection, or with nothing before the mark, is none', async () => {
    const cut = begin();
    await cut.fed.fed({ content: 'tea' });
    cut.fed.end();
    await expect(cut.answer).rejects.toMatchObject({ details: { kind: 'broken' } });
    const empty = begin();
    void empty.fed.raw('data: [DONE]\n\n');
    await expect(empty.answer).rejects.toMatchObject({ details: { kind: 'broken' } });
  });
});

describe('what has no end', () => {
  test.each([
    ['a line', `data: {"a": "${'x'.repeat(4_000)}`, 'x'.repeat(4_500)],
    ['a comment', `: ${'x'.repeat(4_000)}`, 'x'.repeat(4_500)],
    ['a line of letters of three bytes', `data: {"a": "${'語'.repeat(1_000)}`, '語'.repeat(2_000)],
    ['an event of many lines', 'data: {"a":\n'.repeat(600), 'data: [\n'.repeat(2_700)],
    ['a document', `{"a": "${'x'.repeat(4_000)}`, 'x'.repeat(4_500)],
    ['a page', `<html>${'x'.repeat(4_000)}`, 'x'.repeat(4_500)],
  ])('%s is cut at eight times what an answer may hold', async (_, begins, goesOn) => {
    const { fed, answer, hungUp } = begin(1_000);
    await fed.raw(begins);
    expect(hungUp()).toBe(false);
    void fed.raw(goesOn);
    await expect(answer).rejects.toMatchObject({ details: { kind: 'endless' } });
    expect(hungUp()).toBe(true);
  });

  test.each([
    ['reasoning', { type: 'response.reasoning_text.delta', delta: 'x'.repeat(600) }],
    ['arguments', { type: 'response.function_call_arguments.delta', delta: 'x'.repeat(600) }],
  ])('%s on the Responses API is cut at what an answer may hold', async (_, event) => {
    const { fed, answer } = begin(1_000, createResponsesAnswer);
    await fed.event(event);
    void fed.event(event);
    await expect(answer).rejects.toMatchObject({ details: { kind: 'endless' } });
  });

  test('the same text in pieces and as a whole counts once', async () => {
    const { fed, answer } = begin(1_000, createResponsesAnswer);
    const text = 'x'.repeat(700);
    await fed.event({ type: 'response.output_text.delta', output_index: 0, delta: text });
    const item = { type: 'message', content: [{ type: 'output_text', text }] };
    await fed.event({ type: 'response.output_item.done', item });
    await fed.event({ type: 'response.completed', response: { status: 'completed', output: [item] } });
    fed.end();
    expect((await answer).text).toBe(text);
  });
});

describe('how events are written', () => {
  test.each([
    ['with a byte order mark before the first', '\uFEFF', ''],
    ['with one behind blank lines', '\n\n\uFEFF', ''],
  ])('%s', async (_, before) => {
    const { fed, answer } = begin();
    await fed.raw(`${before}${chunk({ delta: { content: 'tea' } })}`);
    await fed.fed({ content: ' and rice' }, 'stop');
    fed.end();
    expect((await answer).text).toBe('tea and rice');
  });

  test('as one document with a byte order mark', async () => {
    const { fed, answer } = begin();
    const document = { choices: [{ message: { content: 'tea' }, finish_reason: 'stop' }] };
    await fed.raw(`\uFEFF${JSON.stringify(document)}`);
    fed.end();
    expect((await answer).text).toBe('tea');
  });

  test('over several lines, and the last without the line that ends it', async () => {
    const { fed, answer } = begin();
    await fed.raw('data: {"choices": [{\ndata: "delta": {"content": "tea"}}]}\n\n');
    await fed.raw('data: {"choices": [{\ndata: "delta": {}, "finish_reason": "stop"}]}\n');
    fed.end();
    expect((await answer).text).toBe('tea');
  });
});
