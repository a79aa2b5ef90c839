/** The steps of the route as they are told for traces: each once, when it is over, and nothing else. */
import { afterEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { AnyTool } from '../../src/core/tool.js';
import type { TracedStep } from '../../src/core/tracing.js';
import { type ManualClock, manualClock } from '../fakes/clock.js';
import { type Workbench, type WorkbenchOptions, workbench } from '../harness/conversation.js';

let on: Workbench;
let clock: ManualClock;
let told: TracedStep[];
afterEach(() => on.close());

const look: AnyTool = {
  ...{ name: 'look', description: 'Looks', risk: 'low', parameters: z.object({}) },
  execute: async () => ({ content: 'nothing there', failed: true }),
};
const send: AnyTool = {
  ...{ name: 'send', description: 'Sends', risk: 'high', parameters: z.object({}) },
  execute: async () => ({ content: 'sent', failed: false }),
};
const OWNER = { sender: { address: '9', name: 'Olga', administrator: false } };
const CONTROL = { ...OWNER, chat: { address: '9', kind: 'direct' as const, title: 'Olga' } };

async function open(options: WorkbenchOptions = {}): Promise<void> {
  clock = manualClock();
  told = [];
  const tracing = { tell: (step: TracedStep) => void told.push(step) };
  const rules = { owners: ['test_9'], controlChats: ['test_9'] };
  on = await workbench({ clock, tracing, rules, tools: [look, send], ...options });
}
const of = <Kind extends TracedStep['kind']>(kind: Kind) =>
  told.filter((step): step is Extract<TracedStep, { kind: Kind }> => step.kind === kind);

describe('what is told', () => {
  it('a message, its turn, what the model and its tools did, and the reply', async () => {
    await open();
    on.answer(async ({ messages }) => {
      await clock.sleep(2_000);
      if (messages.at(-1)?.role === 'tool')
        return { text: 'done', usage: { inputTokens: 9, outputTokens: 2 } };
      return { text: '', calls: [{ name: 'look', arguments: {} }] };
    });
    const said = on.say('hello');
    for (let n = 0; n < 2; n++) {
      await clock.asleep(2_000);
      await clock.advance(2_000);
    }
    await said;
    await on.settled();
    expect(told.map(({ kind }) => kind)).toEqual(['receive', 'model', 'tool', 'model', 'turn', 'send']);
    const [turn] = of('turn');
    const turnId = turn?.turnId;
    expect(turnId).toBeDefined();
    expect(of('model')).toMatchObject([
      { turnId, model: 'm' },
      { turnId, answered: { usage: { inputTokens: 9, outputTokens: 2 } } },
    ]);
    expect(of('model').map(({ from, until }) => until - from)).toEqual([2_000, 2_000]);
    expect(of('tool')).toMatchObject([{ turnId, tool: 'look', error: 'failed' }]);
    expect(of('send')).toMatchObject([{ turnId, channel: 'test', outcome: 'sent' }]);
    expect(turn).toMatchObject({ agent: 'default', outcome: 'answered', error: undefined });
    expect((turn?.until ?? 0) - (turn?.from ?? 0)).toBe(4_000);
    expect(turn?.answers).toEqual(of('receive').map(({ message }) => message));
  });

  it('a turn that waits for a person, once, with all of its time', async () => {
    await open({ newCallCode: () => 'CODE' });
    on.answer(({ messages }) =>
      messages.at(-1)?.role === 'tool' ? 'so be it' : { text: '', calls: [{ name: 'send', arguments: {} }] },
    );
    await on.say('hello', CONTROL);
    await on.settled();
    expect(of('turn')).toEqual([]);
    await clock.advance(60_000);
    await on.say('/approve CODE', CONTROL);
    await on.settled();
    const [turn, ...more] = of('turn');
    expect(more).toEqual([]);
    expect((turn?.until ?? 0) - (turn?.from ?? 0)).toBeGreaterThanOrEqual(60_000);
    expect(of('tool')).toMatchObject([{ tool: 'send', turnId: turn?.turnId, error: undefined }]);
    // The command is no message, and its answers are of no turn.
    expect(of('receive')).toHaveLength(1);
    expect(of('send').some(({ turnId }) => turnId === null)).toBe(true);
  });

  it('a turn that a crash cut off, once, by the process that ends it', async () => {
    await open();
    let asked = 0;
    on.answer(() => {
      asked += 1;
      return new Promise(() => {});
    });
    void on.say('hello');
    await expect.poll(() => asked).toBe(1);
    on = await on.die();
    await on.settled();
    expect(of('turn')).toMatchObject([{ outcome: 'answered' }]);
    expect(of('receive')).toHaveLength(1);
    expect(of('send')[0]?.turnId).toBe(of('turn')[0]?.turnId);
  });

  it('each attempt to send, and the code of a failure', async () => {
    await open();
    on.answer(() => ({ fault: 'model_silent' }));
    on.results.push({ kind: 'unreachable', reason: 'gone', taken: 'no', retryAfterMs: 5_000 });
    void on.say('hello');
    await clock.asleep(5_000);
    await clock.advance(5_000);
    await on.settled();
    expect(of('model')).toMatchObject([{ error: 'model_silent' }]);
    expect(of('turn')).toMatchObject([{ outcome: 'failed', error: 'model_silent' }]);
    expect(of('send').map(({ outcome, error }) => [outcome, error])).toEqual([
      ['unreachable', 'unreachable'],
      ['sent', undefined],
    ]);
  });

  it('no message twice that the platform delivers again', async () => {
    await open();
    const once = { platformMessageId: 'm-1' };
    await on.say('hello', once);
    await on.say('hello', once);
    await on.settled();
    expect(of('receive')).toHaveLength(1);
    expect(of('turn')).toHaveLength(1);
  });
});
