/** A turn asked again: the same requests with the results of then, nothing carried out, and what differs. */
import { expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { Fault } from '../../src/core/errors.js';
import type { RecordedRequest } from '../../src/core/journal.js';
import type { ModelClient, ModelEvent, ModelRequest } from '../../src/core/model.js';
import type { Step } from '../../src/core/transcript.js';
import { type AskedAgain, askAgain } from '../../src/replay/again.js';
import { shownAgain } from '../../src/replay/shown.js';

const call = { id: 'c1', name: 'look', arguments: '{"at":1}' };
const done = (text: string, calls = [call].slice(1)) =>
  ({
    kind: 'done',
    text,
    calls,
    usage: { inputTokens: 100, outputTokens: 10 },
    model: 'm',
    truncated: false,
  }) as const;
const TOOLS = [{ name: 'look', description: 'Looks.', parameters: { type: 'object' } }];
const first: RecordedRequest = {
  ...{ at: 1, ms: 2, tools: TOOLS, temperature: 0.5 },
  messages: [{ role: 'user', content: 'hi', images: [{ mimeType: 'image/png', bytes: 5 }] }],
  end: done('One moment.\nI look.', [call]),
};
const second: RecordedRequest = {
  ...first,
  messages: [
    ...first.messages,
    { role: 'assistant', content: 'One moment.', calls: [call] },
    { role: 'tool', callId: 'c1', content: 'seen' },
  ],
  end: done('It is there.'),
};
const echo = { server: 's', model: 'm', message: { thought: 'sealed' } };
const steps: Step[] = [{ kind: 'answer', text: 'One moment.', calls: [call], echo }];

async function again(...ends: ModelEvent[]): Promise<{ asked: ModelRequest[]; again: AskedAgain[] }> {
  const asked: ModelRequest[] = [];
  const model: ModelClient = {
    async *stream(request): AsyncGenerator<ModelEvent> {
      asked.push(request);
      yield { kind: 'text', delta: 'x' };
      yield { kind: 'restart' };
      const end = ends[asked.length - 1];
      if (end) yield end;
    },
    contextTokens: () => 1000,
    check: async () => ({ identity: '', warnings: [] }),
  };
  const results: AskedAgain[] = [];
  for (const request of [first, second]) {
    results.push(await askAgain({ model, clock: systemClock }, request, steps, new AbortController().signal));
  }
  return { asked, again: results };
}

it('sends what was sent, with what the server wants back, and the results of then', async () => {
  const { asked } = await again(done('', [{ ...call, name: 'other' }]), done('It is there.'));
  expect(asked).toEqual([
    { tools: TOOLS, temperature: 0.5, messages: [{ role: 'user', content: 'hi' }] },
    {
      ...{ tools: TOOLS, temperature: 0.5 },
      messages: [
        { role: 'user', content: 'hi' },
        { role: 'assistant', content: 'One moment.', calls: [call], echo },
        { role: 'tool', callId: 'c1', content: 'seen' },
      ],
    },
  ]);
});

it('shows the lines that differ, and what it took', async () => {
  const other = { ...call, id: 'c9', arguments: '{"at":2}' };
  const changed: ModelEvent = {
    ...done('One moment.\nI look\u001b[2J.', [other]),
    prices: { input: 10, output: 100 },
  };
  const text = shownAgain([first, second], (await again(changed, done('It is there.'))).again);
  expect(text).toContain(
    [
      '  One moment.',
      '- I look.',
      '+ I look\\u{1b}[2J.',
      '  calls look {',
      '-   "at": 1',
      '+   "at": 2',
      '  }',
    ].join('\n'),
  );
  expect(text).toContain('The same as then.');
  expect(text).toContain('200 tokens in and 20 out, which cost about 0.0020');
  expect(text).toContain('Pictures are not recorded');
});

it('shows one changed line of thousands as one', async () => {
  const lines = Array.from({ length: 3_000 }, (_, n) => `line ${n}`);
  const { again: results } = await again(done(lines.toSpliced(1_500, 1, 'another').join('\n')), done('x'));
  const text = shownAgain([{ ...first, end: done(lines.join('\n')) }], results.slice(0, 1));
  expect(text.match(/^[-+] .*$/gm)).toEqual(['- line 1500', '+ another']);
});

it('says that a request failed, and goes on', async () => {
  const failed: ModelEvent = { kind: 'failed', fault: new Fault('model_silent', 'it slept') };
  const { again: results } = await again(failed, done('It is there.'));
  expect(results.map(({ end }) => end.kind)).toEqual(['failed', 'done']);
  expect(shownAgain([first, second], results)).toContain('+ (failed: it slept)');
});
