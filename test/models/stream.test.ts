/** What a stream tells while an answer is written: growing text, and a restart where it does not go on. */

import { Readable } from 'node:stream';
import fc from 'fast-check';
import { afterEach, expect, test } from 'vitest';
import type { ModelEvent } from '../../src/core/model.js';
import { createAnswer } from '../../src/models/answer.js';
import { attempt } from '../../src/models/attempt.js';
import { visibleSoFar, withoutReasoning } from '../../src/models/template-text.js';
import { manualClock } from '../fakes/clock.js';
import type { FakeModelOptions } from '../fakes/model.js';
import { ask, type Bench, openBench, outcome } from './helpers.js';

let bench: Bench | undefined;
afterEach(async () => {
  await bench?.fake.close();
  bench = undefined;
});

async function eventsOf(stream: AsyncIterable<ModelEvent>): Promise<ModelEvent[]> {
  const events: ModelEvent[] = [];
  for await (const event of stream) events.push(event);
  return events;
}

/** What somebody who reads along has before them after each event. */
function readAlong(events: ModelEvent[]): string[] {
  let text = '';
  return events.flatMap((event) => {
    if (event.kind === 'text') text += event.delta;
    else if (event.kind === 'restart') text = '';
    else return [];
    return [text];
  });
}

test('however an answer is cut into pieces, what was told ends as its text (property)', async () => {
  const words = fc.constantFrom(
    '<think>',
    '</think>',
    '<thinking>',
    '</thinking>',
    ' hm ',
    'Tea',
    '\n',
    '<',
    '',
  );
  await fc.assert(
    fc.asyncProperty(
      fc.array(words, { maxLength: 12 }),
      fc.string(),
      fc.string(),
      async (pieces, given, soFar) => {
        const lines = [
          ...pieces.map((content) => ({ delta: { content } })),
          { delta: {}, finish_reason: 'stop' },
        ];
        const body = lines.map((choice) => `data: ${JSON.stringify({ choices: [choice] })}\n\n`);
        const writing = attempt({
          post: async () => Readable.from(body.map((line) => Buffer.from(line))),
          body: { text: '{}', pictures: [] },
          answer: createAnswer(),
          silenceMs: 60_000,
          mostBytes: 2_000_000,
          sent: { tools: [], messages: [] },
          // What an attempt that was given up has shown.
          shown: { text: given },
          // What an earlier request has brought of the same answer.
          before: soFar,
          clock: manualClock(),
          signal: new AbortController().signal,
        });
        const events: ModelEvent[] = given === '' ? [] : [{ kind: 'text', delta: given }];
        let next = await writing.next();
        for (; !next.done; next = await writing.next()) events.push(next.value);
        expect(readAlong(events).at(-1) ?? '').toBe(next.value.text);
        for (const event of events) if (event.kind === 'text') expect(event.delta).not.toBe('');
      },
    ),
  );
});

test('what is visible of a growing text never shows what turns out to be a thought', () => {
  const parts = fc.constantFrom('<think>', '</think>', '<thinking>', '</thinking>', ' hm ', 'Tea', '\n', '<');
  fc.assert(
    fc.property(fc.array(parts, { maxLength: 8 }), (pieces) => {
      const whole = `<think>secret${pieces.join('')}`;
      for (let end = 0; end <= whole.length; end++) {
        expect(visibleSoFar(whole.slice(0, end))).not.toContain('secret');
      }
    }),
  );
  expect(visibleSoFar('<thi')).toBe('');
  expect(visibleSoFar('<this')).toBe('<this');
  expect(visibleSoFar('a <thi')).toBe('a <thi');
  expect(withoutReasoning('<thi')).toBe('<thi');
});

async function open(reply: FakeModelOptions['reply']): Promise<Bench> {
  bench = await openBench(reply);
  return bench;
}

const stream = ({ client }: Bench) => client.stream(ask('?'), new AbortController().signal);

test('text comes while the server writes', async () => {
  const on = await open({ text: 'Tea is good', chunkSize: 3, stallAfter: 2 });
  let text = '';
  for await (const event of stream(on)) {
    if (event.kind === 'text') text += event.delta;
    // The server will never say more: whoever waited for its end would wait for ever.
    if (text === 'Tea is') break;
  }
  expect(text).toBe('Tea is');
  // Nobody reads it any more.
  await expect.poll(() => on.fake.requests[0]?.abandoned).toBe(true);
  expect(on.clock.sleeping()).toEqual([]);
});

test('reasoning is never told, in a field of its own or between tags, also where only its end is marked', async () => {
  const answers = [
    { reasoning: 'the secret', text: 'Tea.', chunkSize: 1 },
    { text: '<think>the secret</think>\nTea.', chunkSize: 1 },
  ];
  for (const answer of answers) {
    const events = await eventsOf(stream(await open(answer)));
    expect(readAlong(events).join('|')).not.toMatch(/secret|think/);
    expect(readAlong(events).at(-1)).toBe('Tea.');
    await bench?.fake.close();
  }
  const late = await eventsOf(stream(await open({ text: 'the secret\n</think>\nTea.', chunkSize: 1 })));
  expect(late.map(({ kind }) => kind)).toContain('restart');
  expect(readAlong(late).at(-1)).toBe('Tea.');
});

test('an attempt that broke off is void: the next begins anew', async () => {
  const cut = { text: 'Tea is go', chunkSize: 3, cutAfter: 2 };
  const on = await open((_body, n) => (n === 0 ? cut : { text: 'Coffee.', chunkSize: 3 }));
  const reading = eventsOf(stream(on));
  await on.clock.asleep(500);
  await on.clock.advance(500);
  const events = await reading;
  const before = events.findIndex(({ kind }) => kind === 'restart');
  expect(readAlong(events.slice(0, before)).at(-1)).toBe('Tea is');
  expect(readAlong(events).at(-1)).toBe('Coffee.');
  expect(events.at(-1)).toMatchObject({ kind: 'done', text: 'Coffee.' });
});

test('one that is silent half-way fails, and says no more', async () => {
  const on = await open({ text: 'Tea is good', chunkSize: 3, stallAfter: 2 });
  const event = outcome(on.client, ask('?'));
  await on.fake.received(1);
  await on.clock.asleep(60_000);
  await on.clock.advance(120_000);
  expect((await event).kind).toBe('failed');
});
