import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { runTurn, type TurnParts } from '../../src/conversation/turn/turn.js';
import { systemClock } from '../../src/core/clock.js';
import type { ModelClient, ModelRequest, ToolCall } from '../../src/core/model.js';
import type { AnyTool } from '../../src/core/tool.js';
import type { Step } from '../../src/core/transcript.js';
import { quietLog, quietMetrics } from '../harness/quiet.js';

type Answer = { text?: string; calls?: Partial<ToolCall>[] };

/** A model that answers what it is told, in order, and keeps what it was asked. */
function scripted(answers: Answer[]): ModelClient & { asked: ModelRequest[] } {
  const asked: ModelRequest[] = [];
  return {
    asked,
    async *stream(request) {
      asked.push(structuredClone(request));
      const { text = '', calls = [] } = answers[asked.length - 1] ?? { text: 'the end' };
      const whole = calls.map((call, n) => ({ id: `call_${n}`, name: 'append', arguments: '{}', ...call }));
      yield { kind: 'done', text, calls: whole, usage: null, model: 'm', truncated: false };
    },
    check: async () => ({ identity: 'scripted', warnings: [] }),
  };
}

const lines: string[] = [];
const append: AnyTool = {
  ...{ name: 'append', description: '', risk: 'medium', repeatable: false },
  parameters: z.object({ line: z.string().optional() }),
  execute: async ({ line = 'a line' }: { line?: string }) => {
    lines.push(line);
    return { content: `appended ${line}`, failed: false };
  },
};
const look: AnyTool = {
  ...{ name: 'look', description: '', risk: 'low', repeatable: true },
  parameters: z.object({}),
  execute: async () => ({ content: `${lines.length} lines`, failed: false }),
};
const broken: AnyTool = {
  ...{ name: 'broken', description: '', risk: 'low', repeatable: true },
  parameters: z.object({ n: z.number() }),
  execute: async () => {
    throw new Error('the secret inside');
  },
};

async function turn(answers: Answer[], steps: Step[] = [], maxToolRounds = 25) {
  const model = scripted(answers);
  lines.length = 0;
  const saved: Step[] = [];
  const parts: TurnParts = {
    model,
    tools: [append, look, broken],
    toolDescriptions: [{ name: 'append', description: '', parameters: {} }],
    maxToolRounds,
    timezone: 'UTC',
    clock: systemClock,
    log: quietLog,
    metrics: quietMetrics,
  };
  const outcome = await runTurn(parts, {
    turnId: 'turn-1',
    cause: { kind: 'turn', personaId: 'default', turnId: 'turn-1' },
    context: {
      persona: {
        id: 'default',
        name: 'default',
        model: null,
        temperature: null,
        avatar: null,
        aliases: [],
        from: null,
        character: '',
      },
      messages: [{ role: 'user', content: 'hi' }],
      seen: new Map(),
    },
    authorisation: { chatId: 'c_1', personaId: 'default', senderId: 'c_1', channel: 'c', controlChats: [] },
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

  it('goes on from the last stored step: a call without a result is interrupted, only reads run again', async () => {
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

describe('what models do wrong', () => {
  it('hears of arguments that are no JSON, once; then it has to answer without tools', async () => {
    const bad = { calls: [{ arguments: '{"line": ' }] };
    const { outcome, asked, results, lines: written } = await turn([bad, bad, { text: 'sorry' }]);
    expect(outcome).toMatchObject({ kind: 'answered', text: 'sorry' });
    expect(asked.map(({ tools }) => tools.length)).toEqual([1, 1, 0]);
    expect(results[0]).toMatch(/not valid JSON/);
    expect(written).toEqual([]);
  });

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

  it('ends the same call for ever after the allowed rounds, with one more answer without tools', async () => {
    const { asked, outcome } = await turn(
      Array.from({ length: 3 }, () => ({ calls: [{}] })),
      [],
      3,
    );
    expect(asked).toHaveLength(4);
    expect(asked.at(-1)?.tools).toEqual([]);
    expect(outcome).toMatchObject({ kind: 'answered', text: 'the end' });
  });

  it('takes what was said beside the calls when the last answer is empty', async () => {
    const { outcome } = await turn([{ text: 'Saved it.', calls: [{}] }, { text: '' }]);
    expect(outcome).toMatchObject({ kind: 'answered', text: 'Saved it.' });
  });
});
