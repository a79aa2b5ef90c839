/** What ends the process each time it is begun: a turn, a memory flush, a summary. It is not begun for ever. */
import { afterEach, expect, it } from 'vitest';
import type { ChatBody } from '../fakes/model.js';
import { eventually, type Running } from '../harness/gateway.js';
import { type Stage, type StageOptions, stage } from '../harness/telegram.js';

const ANNA = 41;
const BERT = 42;
const SENTENCE = 'Something went wrong on my side, and I could not answer. Please send it again.';

let on: Stage;
let running: Running;
let deaths: number;
afterEach(() => on.close());

/** A gateway whose process ends whenever its model gets such a request. */
async function dyingOf(isDeadly: (body: ChatBody) => boolean, options: StageOptions = {}): Promise<void> {
  deaths = 0;
  on = await stage(options);
  on.model.reply((body) => {
    if (!isDeadly(body)) return 'fine';
    deaths++;
    void running.stop('SIGKILL');
    return { stall: 'headers' };
  });
  running = await on.start();
}

/** Starts it again whenever it has ended, as a supervisor does, until that has come. */
async function restartedUntil(isSo: () => boolean, what: string): Promise<void> {
  await eventually(
    async () => {
      if (isSo()) return true;
      const isOver = await Promise.race([
        running.exited.then(() => true),
        new Promise<false>((resolve) => setImmediate(() => resolve(false))),
      ]);
      if (isOver) running = on.launch();
      return false;
    },
    what,
    60_000,
  );
}

function say(id: number, text: string): void {
  on.telegram.say({ chat: { id, type: 'private' }, from: { id, first_name: `P${id}` }, text });
}

const lastWords = (body: ChatBody) =>
  body.messages.findLast(({ role, content }) => role === 'user' && content !== null)?.content ?? '';

it('a turn is given up after five ends where nothing else is done: its chat is told once', async () => {
  await dyingOf((body) => lastWords(body).includes('poison'));
  say(ANNA, 'poison');
  await restartedUntil(() => on.sentTo(ANNA).length > 0, 'Anna is told');
  expect(on.sentTo(ANNA)).toEqual([SENTENCE]);
  expect(deaths).toBe(5);
  say(ANNA, 'and now?');
  expect(await on.replies(ANNA, 2)).toEqual([SENTENCE, 'fine']);
  expect(deaths).toBe(5);
}, 90_000);

it('others are answered beside it; an end after one of them was answered is forgiven, ten times at most', async () => {
  await dyingOf((body) => lastWords(body).includes('poison'));
  say(ANNA, 'poison');
  await eventually(() => deaths === 1, 'the first end');
  say(BERT, 'hello');
  await restartedUntil(() => on.sentTo(BERT).length > 0, 'Bert is answered');
  expect(on.sentTo(BERT)).toEqual(['fine']);
  await restartedUntil(() => on.sentTo(ANNA).length > 0, 'Anna is told');
  expect(on.sentTo(ANNA)).toEqual([SENTENCE]);
  expect(deaths).toBeGreaterThanOrEqual(5);
  expect(deaths).toBeLessThanOrEqual(15);
  expect(on.sentTo(BERT)).toEqual(['fine']);
}, 90_000);

it.each([
  ['a memory flush', (body: ChatBody) => lastWords(body).startsWith('Memory flush.')],
  ['a summary', (body: ChatBody) => lastWords(body).endsWith('Conversation summary: write the new one.')],
])(
  '%s rests after five ends, and what was said meanwhile is answered',
  async (_what, isDeadly) => {
    await dyingOf(isDeadly, {
      config: { conversation: { compact_after_messages: 4, keep_recent_messages: 2 } },
    });
    for (let n = 1; n <= 12; n++) {
      say(ANNA, `message ${n}`);
      await restartedUntil(() => on.sentTo(ANNA).length >= n, `an answer to message ${n}`);
    }
    // Nothing is left that would end it.
    await eventually(() => running.err().includes('ended the process too often'), 'it rests');
    expect(deaths).toBe(5);
    expect(new Set(on.sentTo(ANNA))).toEqual(new Set(['fine']));
  },
  90_000,
);
