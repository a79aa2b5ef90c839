/** What a stream tells while an answer is written: growing text, and a restart where it does not go on. */
import fc from 'fast-check';
import { afterEach, expect, test } from 'vitest';
import { Fault } from '../../src/core/errors.js';
import type { ModelEvent } from '../../src/core/model.js';
import { visibleSoFar, withoutReasoning } from '../../src/models/reasoning.js';
import { type StreamEnd, telling } from '../../src/models/telling.js';
import type { FakeModelOptions } from '../fakes/model.js';
import { ask, type Bench, openBench, outcome } from './helpers.js';

let bench: Bench | undefined;
afterEach(async () => {
  await bench?.fake.close();
  bench = undefined;
});

const done = (text: string): StreamEnd => ({
  ...{ kind: 'done', calls: [], usage: null, model: 'm', truncated: false },
  text,
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

test('whatever is shown and however fast, what was told ends as the text of the end (property)', async () => {
  const shown = fc.array(fc.record({ text: fc.string({ maxLength: 6 }), pause: fc.boolean() }));
  await fc.assert(
    fc.asyncProperty(shown, fc.option(fc.string()), async (texts, last) => {
      const events = await eventsOf(
        telling(async (shows) => {
          for (const { text, pause } of texts) {
            shows(text);
            if (pause) await new Promise((resolve) => setImmediate(resolve));
          }
          return last === null ? { kind: 'failed', fault: new Fault('internal', 'x') } : done(last);
        }),
      );
      const ends = events.filter(({ kind }) => kind === 'done' || kind === 'failed');
      expect(ends).toHaveLength(1);
      expect(events.at(-1)).toBe(ends[0]);
      if (last !== null) expect(readAlong(events).at(-1) ?? '').toBe(last);
      for (const event of events) if (event.kind === 'text') expect(event.delta).not.toBe('');
    }),
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
  const telling = eventsOf(stream(on));
  await on.clock.asleep(500);
  await on.clock.advance(500);
  const events = await telling;
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
