import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { Services } from '../../src/conversation/services.js';
import { toolHash, toolSet } from '../../src/conversation/turn/call.js';
import { runTurn } from '../../src/conversation/turn/turn.js';
import { systemClock } from '../../src/core/clock.js';
import type { ModelClient, ModelRequest, ToolCall } from '../../src/core/model.js';
import type { AnyTool, ToolContext } from '../../src/core/tool.js';
import type { Step } from '../../src/core/transcript.js';
import { askerWho } from '../harness/asker.js';
import { quietLog, quietMetrics } from '../harness/quiet.js';

type Answer = { text?: string; calls?: Partial<ToolCall>[]; truncated?: boolean; cut?: true };

/** A model that answers what it is told, in order, and keeps what it was asked. */
function scripted(answers: Answer[]): ModelClient & { asked: ModelRequest[] } {
  const asked: ModelRequest[] = [];
  return {
    asked,
    async *stream(request) {
      asked.push(structuredClone(request));
      const answer = answers[asked.length - 1] ?? { text: 'the end' };
      const { text = '', calls = [], truncated = false, cut } = answer;
      const whole = calls.map((call, n) => ({ id: `call_${n}`, name: 'append', arguments: '{}', ...call }));
      yield { kind: 'done', text, calls: whole, usage: null, model: 'm', truncated, ...(cut && { cut }) };
    },
    contextTokens: () => 100_000,
    check: async () => ({ identity: 'scripted', warnings: [] }),
  };
}

const lines: string[] = [];
const append: AnyTool = {
  ...{ name: 'append', description: '', risk: 'medium' },
  parameters: z.object({ line: z.string().optional() }),
  execute: async ({ line = 'a line' }: { line?: string }) => {
    lines.push(line);
    return { content: `appended ${line}`, failed: false };
  },
};
const look: AnyTool = {
  ...{ name: 'look', description: '', risk: 'low' },
  parameters: z.object({}),
  execute: async () => ({ content: `${lines.length} lines`, failed: false }),
};
const broken: AnyTool = {
  ...{ name: 'broken', description: '', risk: 'low' },
  parameters: z.object({ n: z.number() }),
  execute: async () => {
    throw new Error('the secret inside');
  },
};

/** `tools` are those of the turn; one alone is enough where it is not looked at what a model is told of them. */
async function turn(
  answers: Answer[],
  steps: Step[] = [],
  { maxToolRounds = 25, tools = [append, look, broken] }: { maxToolRounds?: number; tools?: AnyTool[] } = {},
) {
  const model = scripted(answers);
  lines.length = 0;
  const saved: Step[] = [];
  const audit = { record: async () => {}, note: async () => {} };
  const services = {
    model,
    audit,
    zone: { name: 'UTC' },
    clock: systemClock,
    newCallCode: () => 'ABC234',
    log: quietLog,
    metrics: quietMetrics,
  };
  const outcome = await runTurn(services as unknown as Services, {
    turnId: 'turn-1',
    room: 'c_1/7',
    tools: toolSet(tools),
    maxToolRounds,
    bounds: { callsPerAnswer: 16, sendsPerTurn: 5, sameCallsPerTurn: 3, tokens: 100_000 },
    persona: { model: null, temperature: null },
    messages: [{ role: 'user', content: 'hi' }],
    seen: new Map(),
    authorisation: {
      ...{ chatId: 'c_1', personaId: 'default', senderId: 'c_1', channel: 'c', controlChats: [] },
      asker: askerWho(),
    },
    cause: { kind: 'turn', personaId: 'default', turnId: 'turn-1' },
    record: { room: 'c_1/7', turnId: 'turn-1', parentEventId: 'evt-7' },
    trust: { isTainted: false, isNamed: () => false },
    approvalMs: null,
    steps,
    save: async (step) => {
      saved.push(step);
      return true;
    },
    signal: new AbortController().signal,
  });
  const results = model.asked
    .at(-1)
    ?.messages.flatMap((message) => (message.role === 'tool' ? [message.content] : []));
  return { outcome, saved, asked: model.asked, results: results ?? [], lines: [...lines] };
}

describe('the steps of a turn', () => {
  it('stores each answer that calls and each call before and after, and asks again with the results', async () => {
    const { outcome, saved, results } = await turn([
      { text: 'wait', calls: [{}, { name: 'look' }] },
      { text: 'done' },
    ]);
    expect(outcome).toMatchObject({ kind: 'answered', text: 'done' });
    expect(saved.map((step) => step.kind)).toEqual(['answer', 'call', 'result', 'call', 'result']);
    expect(results).toEqual(['appended a line', '1 lines']);
  });

  it('goes on from the last stored step: a call without a result is interrupted, what never began runs', async () => {
    const calls = [
      { id: 'a', name: 'append', arguments: '{}' },
      { id: 'b', name: 'look', arguments: '{}' },
      { id: 'c', name: 'append', arguments: '{"line":"never begun"}' },
    ];
    const {
      results,
      lines: written,
      asked,
    } = await turn(
      [{ text: 'went on' }],
      [
        { kind: 'answer', text: '', calls },
        { kind: 'call', callId: 'a' },
      ],
    );
    expect(asked).toHaveLength(1);
    expect(results[0]).toMatch(/^Interrupted: .*outcome is unknown/);
    expect(results[1]).toBe('0 lines');
    expect(written).toEqual(['never begun']);
  });

  it('gives calls ids of our own, the same when a turn is taken up again', async () => {
    const first = await turn([{ calls: [{ id: '0' }] }, { calls: [{ id: '0' }] }, { text: 'x' }]);
    const second = await turn([{ calls: [{ id: 'zero' }] }, { calls: [{}] }, { text: 'x' }]);
    const ids = (saved: Step[]) =>
      saved.flatMap((step) => (step.kind === 'answer' ? step.calls.map(({ id }) => id) : []));
    expect(ids(first.saved)).toEqual(ids(second.saved));
    expect(new Set(ids(first.saved)).size).toBe(2);
    for (const id of ids(first.saved)) expect(id).toMatch(/^[a-z0-9]{9}$/);
  });
});

/** A call that waits for something outside of its turn. */
const waiting = (until: number | null = null): AnyTool => ({
  ...{ name: 'ask', description: '', risk: 'medium', parameters: z.object({}) },
  execute: async () => ({ waitsFor: 'approval-1', until }),
});

describe('a call that waits', () => {
  it('suspends the turn with a step that says for what, and the calls behind it wait, too', async () => {
    const {
      outcome,
      saved,
      asked,
      lines: written,
    } = await turn([{ calls: [{ name: 'ask' }, { name: 'append' }] }], [], { tools: [waiting(5), append] });
    expect(outcome).toEqual({ kind: 'suspended', waitsFor: 'approval-1', until: 5 });
    expect(saved.map((step) => step.kind)).toEqual(['answer', 'call', 'waiting']);
    const call = saved[0]?.kind === 'answer' ? saved[0].calls[0] : undefined;
    expect(saved.at(-1)).toEqual({ kind: 'waiting', callId: call?.id, waitsFor: 'approval-1', until: 5 });
    expect(asked).toHaveLength(1);
    expect(written).toEqual([]);
  });

  it('is not made again while nothing has come; with its result the turn goes on behind it', async () => {
    const calls = [
      { id: 'a', name: 'ask', arguments: '{}' },
      { id: 'b', name: 'append', arguments: '{}' },
    ];
    const begun: Step[] = [
      { kind: 'answer', text: '', calls },
      { kind: 'call', callId: 'a' },
      { kind: 'waiting', callId: 'a', waitsFor: 'approval-1', until: null },
    ];
    const tools = [waiting(), append];
    const still = await turn([], [...begun], { tools });
    expect(still.outcome).toEqual({ kind: 'suspended', waitsFor: 'approval-1', until: null });
    expect(still.saved).toEqual([]);
    expect(still.asked).toEqual([]);
    const result: Step = { kind: 'result', callId: 'a', content: 'approved', failed: false };
    const on = await turn([{ text: 'done' }], [...begun, result], { tools });
    expect(on.outcome).toMatchObject({ kind: 'answered', text: 'done' });
    expect(on.results).toEqual(['approved', 'appended a line']);
  });
});

describe('a call that a person has allowed', () => {
  it('runs with the arguments that were allowed, whatever stands in the answer', async () => {
    const calls = [{ id: 'a', name: 'append', arguments: '{"line":"asked"}' }];
    const { lines: written, saved } = await turn(
      [{ text: 'done' }],
      [
        { kind: 'answer', text: '', calls },
        { kind: 'waiting', callId: 'a', waitsFor: 'approval:X:y', until: null, tool: toolHash(append) },
        { kind: 'approved', callId: 'a', arguments: '{"line":"allowed"}', by: 'c_9' },
      ],
    );
    expect(written).toEqual(['allowed']);
    expect(saved.map(({ kind }) => kind)).toEqual(['call', 'result']);
  });

  it('is refused where nobody can be asked', async () => {
    const risky: AnyTool = { ...append, risk: 'high' };
    const { lines: written, results } = await turn([{ calls: [{}] }, { text: 'x' }], [], { tools: [risky] });
    expect(written).toEqual([]);
    expect(results[0]).toMatch(/^Not run: a person would have to allow this, and nobody can be asked here/);
  });
});

describe('what a tool is told and checked with', () => {
  it('in which room, turn and call it runs', async () => {
    const seen: Pick<ToolContext, 'room' | 'turnId' | 'callId'>[] = [];
    const curious: AnyTool = {
      ...{ name: 'curious', description: '', risk: 'low', parameters: z.object({}) },
      execute: async (_given: never, { room, turnId, callId }: ToolContext) => {
        seen.push({ room, turnId, callId });
        return { content: 'seen', failed: false };
      },
    };
    const { saved } = await turn([{ calls: [{ name: 'curious' }] }, { text: 'x' }], [], { tools: [curious] });
    const callId = saved[0]?.kind === 'answer' ? saved[0].calls[0]?.id : undefined;
    expect(seen).toEqual([{ room: 'c_1/7', turnId: 'turn-1', callId }]);
  });

  it('by a JSON schema instead of zod: the model is shown that very schema, and the tool checks itself', async () => {
    const parameters = {
      type: 'object' as const,
      properties: { city: { type: 'string' } },
      required: ['city'],
    };
    const given: unknown[] = [];
    const foreign: AnyTool = {
      ...{ name: 'weather', description: 'What the sky does', risk: 'medium', parameters },
      execute: async (arguments_: never) => {
        given.push(arguments_);
        return { content: 'rain', failed: false };
      },
    };
    const { asked, results } = await turn(
      [
        { calls: [{ name: 'weather', arguments: '{"city":"Graz","unit":null}' }] },
        { calls: [{ name: 'weather', arguments: '{"town":7}' }] },
        { text: 'x' },
      ],
      [],
      { tools: [foreign] },
    );
    expect(asked[0]?.tools).toEqual([{ name: 'weather', description: 'What the sky does', parameters }]);
    expect(given).toEqual([{ city: 'Graz' }, { town: 7 }]);
    expect(results).toEqual(['rain', 'rain']);
  });
});

describe('what models do wrong', () => {
  it('hears of arguments that are no JSON, once; then it has to answer without calls', async () => {
    const bad = { calls: [{ arguments: '{"line": ' }] };
    const { outcome, asked, results, lines: written } = await turn([bad, bad, { text: 'sorry' }]);
    expect(outcome).toMatchObject({ kind: 'answered', text: 'sorry' });
    // The tools are sent all the same, for the server's prompt cache; it is told that they must not be called.
    expect(asked.map(({ tools }) => tools.length)).toEqual([3, 3, 3]);
    expect(asked.map(({ mayCall }) => mayCall)).toEqual([undefined, undefined, false]);
    expect(results[0]).toMatch(/not valid JSON/);
    expect(written).toEqual([]);
  });

  it.each(['{"line":', '{"line":"x","more":', '['])(
    'hears of arguments that are too deep (%s)',
    async (begin) => {
      const nested = `${'['.repeat(20_000)}${']'.repeat(20_000)}`;
      const deep = { calls: [{ arguments: begin === '[' ? nested : `${begin}${nested}}` }] };
      const { outcome, results, lines: written } = await turn([deep, deep, { text: 'sorry' }]);
      expect(outcome).toMatchObject({ kind: 'answered', text: 'sorry' });
      expect(results[0]).toMatch(/nested more than 100 levels deep/);
      expect(written).toEqual([]);
    },
  );

  it('takes null for left out, and names what does not fit a schema', async () => {
    const { results } = await turn([
      {
        calls: [
          { arguments: '{"line":null}' },
          { arguments: '{"line":7}' },
          { name: 'nowhere' },
          { name: 'broken', arguments: '{"n":1}' },
        ],
      },
      { text: 'ok' },
    ]);
    expect(results[0]).toBe('appended a line');
    expect(results[1]).toMatch(/line: .*string/);
    expect(results[2]).toMatch(/no tool named nowhere.*append, look, broken/);
    expect(results[3]).toMatch(/^broken failed: an unexpected fault/);
    expect(results.join()).not.toContain('the secret inside');
  });

  it('ends the same call for ever after the allowed rounds, with one more answer without calls', async () => {
    const { asked, outcome, results } = await turn(
      Array.from({ length: 3 }, () => ({ calls: [{}] })),
      [],
      { maxToolRounds: 3 },
    );
    expect(asked).toHaveLength(4);
    expect(asked.at(-1)?.mayCall).toBe(false);
    expect(asked.at(-1)?.tools).toEqual(asked[0]?.tools);
    expect(results).toHaveLength(3);
    expect(outcome).toMatchObject({ kind: 'answered', text: 'the end' });
  });

  it('asks a model that calls even then once more, without tools, and does nothing of it', async () => {
    const { asked, outcome, results } = await turn(
      Array.from({ length: 4 }, () => ({ calls: [{}] })),
      [],
      { maxToolRounds: 3 },
    );
    expect(asked.map(({ tools }) => tools.length)).toEqual([3, 3, 3, 3, 0]);
    expect(results).toHaveLength(3);
    expect(outcome).toMatchObject({ kind: 'answered', text: 'the end' });
  });

  it('marks what even then ends at its limit, and says when a server read only a part of it', async () => {
    const calls = [{}];
    const { outcome } = await turn(
      [{ calls }, { calls, cut: true }, { text: 'half a sent', truncated: true }],
      [],
      { maxToolRounds: 1 },
    );
    expect(outcome).toMatchObject({
      text: expect.stringMatching(/^half a sent …\n\n\(This is cut off/),
      cut: true,
    });
  });

  it('takes what was said beside the calls when the last answer is empty', async () => {
    const { outcome } = await turn([{ text: 'Saved it.', calls: [{}] }, { text: '' }]);
    expect(outcome).toMatchObject({ kind: 'answered', text: 'Saved it.' });
  });

  it('names the room’s and persona’s prompt cache in every request, and neither of them', async () => {
    const { asked } = await turn([{ calls: [{}] }, { text: 'ok' }]);
    const [first, second] = asked.map(({ cacheKey }) => cacheKey);
    expect(first).toMatch(/^[0-9a-f]{32}$/);
    expect(second).toBe(first);
  });

  it('loses none of what was said beside several calls, and says nothing twice', async () => {
    const { outcome, asked } = await turn([
      { text: 'The ferry leaves at nine.', calls: [{}] },
      { text: 'The ferry leaves at nine.', calls: [{}] },
      { text: 'Take a coat.', calls: [{}] },
      { text: '' },
    ]);
    expect(outcome).toMatchObject({ text: 'The ferry leaves at nine.\n\nTake a coat.' });
    expect(asked.map(({ mayBeEmpty = false }) => mayBeEmpty)).toEqual([false, true, true, true]);
  });
});
