/** Silence within an answer, with a body that is fed by hand, so that no real time decides. */

import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import type { Answer } from '../../src/models/answer.js';
import { createAnswer } from '../../src/models/answer.js';
import { attempt } from '../../src/models/attempt.js';
import { manualClock } from '../fakes/clock.js';

/** An answer whose pieces arrive when the test says so; `fed` resolves when the piece has been taken. */
function fedAnswer() {
  let wanted: (() => void) | undefined;
  const body = new Readable({ highWaterMark: 0, read: () => wanted?.() });
  body.on('error', () => {});
  return {
    answer: body,
    end: () => body.push(null),
    break: () => body.destroy(new Error('aborted')),
    fed: async (delta: object, finish: string | null = null) => {
      const data = JSON.stringify({ choices: [{ delta, finish_reason: finish }] });
      const taken = new Promise<void>((resolve) => {
        wanted = resolve;
      });
      body.push(`data: ${data}\n\n`);
      await taken;
    },
  };
}

async function answerOf(writing: AsyncGenerator<unknown, Answer>): Promise<Answer> {
  let next = await writing.next();
  while (!next.done) next = await writing.next();
  return next.value;
}

function begin(mostBytes = 2_000_000) {
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
    body: { text: '{}', slot: '', pictures: [] },
    answer: createAnswer(),
    silenceMs: 60_000,
    mostBytes,
    shown: { text: '' },
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
    post: async () => Readable.from([...lines, 'data: [DONE]\n\n']),
    body: { text: '{}', slot: '', pictures: [] },
    answer: counted,
    silenceMs: 60_000,
    mostBytes: 2_000_000,
    shown: { text: '' },
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
