/** The calls of a turn on the record: intent before, outcome after, none run twice, each within its time. */

import { afterEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { Fault } from '../../src/core/errors.js';
import type { MattTurn } from '../../src/core/journal.js';
import type { Store } from '../../src/core/store.js';
import type { AnyTool, ToolContext, ToolResult, Wait } from '../../src/core/tool.js';
import { journalOf } from '../contract/store/words.js';
import { manualClock } from '../fakes/clock.js';
import { type Answer, type Workbench, type WorkbenchOptions, workbench } from '../harness/conversation.js';

let on: Workbench;
afterEach(() => on.close());

/** A tool that does what it is told. */
function tool(
  name: string,
  execute: (given: Record<string, unknown>, context: ToolContext) => Promise<ToolResult | Wait>,
  more: Partial<AnyTool> = {},
): AnyTool {
  const parameters = { type: 'object' as const };
  return { name, description: name, risk: 'medium', parameters, execute, ...more } as AnyTool;
}
const done = (content: string): ToolResult => ({ content, failed: false });

type Calls = { name: string; arguments: object }[];

/** Calls these, all in one answer, and then says `done`. */
async function open(calls: Calls, options: WorkbenchOptions, text = '') {
  on = await workbench(options);
  on.answer((request): Answer => (request.messages.at(-1)?.role === 'tool' ? 'done' : { text, calls }));
}

async function ask(): Promise<void> {
  await on.say('go');
  await on.settled();
}

const entries = async () => (await journalOf(on.store)).map(({ entry }) => entry);
const turns = async () => (await entries()).filter((entry): entry is MattTurn => entry.type === 'MattTurn');
const callsOf = async (name: string) => (await turns()).filter(({ action }) => action.tool === name);
const results = () =>
  on.asked.at(-1)?.messages.flatMap((message) => (message.role === 'tool' ? [message.content] : [])) ?? [];

describe('the record of a call', () => {
  it('is there before it runs, and its outcome with the result', async () => {
    const during: MattTurn[] = [];
    const look = tool('look', async () => {
      during.push(...(await callsOf('look')));
      return done('a rose');
    });
    await open(
      [{ name: 'look', arguments: { at: 'it', tool: 'eye', tool_: 1 } }],
      { tools: [look] },
      'I look',
    );
    await ask();
    const { messages } = await on.store.window({
      ...{ room: 'test_1', personaId: 'default', limit: 9, overheard: 9, except: [] },
    });
    const [asked] = messages;
    expect(during).toMatchObject([
      {
        ...{ type: 'MattTurn', agent: 'default', status: 'pending', reasoning: 'I look', results: null },
        parent_event_id: `evt-${asked?.id}`,
        action: { tool: 'look', at: 'it', tool_: 'eye', tool__: 1 },
      },
    ]);
    expect(during[0]).not.toHaveProperty('timestamp_outcome');
    const [after] = await callsOf('look');
    expect(after).toMatchObject({ id: during[0]?.id, status: 'completed', results: { output: 'a rose' } });
    expect(after?.id).toBe(
      `turn-${messages.at(-1)?.turnId}-${results().length && on.asked.at(-1)?.messages.flatMap((m) => (m.role === 'tool' ? [m.callId] : []))[0]}`,
    );
  });

  it('holds what failed as an error, what is no JSON as text, and what was asked of an unknown tool', async () => {
    const broken = tool('broken', async () => {
      throw new Fault('internal', 'no disk');
    });
    on = await workbench({
      tools: [broken],
      model: {
        async *stream({ messages }) {
          const calls = [
            { id: '1', name: 'broken', arguments: '{}' },
            { id: '2', name: 'broken', arguments: 'not {json' },
            { id: '3', name: 'nothing', arguments: '{"a":1}' },
          ];
          const isAsked = messages.at(-1)?.role !== 'tool';
          const rest = { usage: null, truncated: false, model: 'm', notices: [] };
          yield { kind: 'done', text: isAsked ? '' : 'done', calls: isAsked ? calls : [], ...rest };
        },
        contextTokens: () => 100_000,
        check: async () => ({ identity: 'x', warnings: [] }),
      },
    });
    await ask();
    const calls = (await turns()).filter(({ action }) => action.tool !== 'send_message');
    expect(calls).toMatchObject(
      [
        { action: { tool: 'broken' }, status: 'completed', results: { error: /^broken failed/ } },
        { action: { tool: 'broken', arguments: 'not {json' }, results: { error: /not valid JSON/ } },
        { action: { tool: 'nothing', a: 1 }, results: { error: /^There is no tool named nothing/ } },
      ].map(({ results: { error }, ...entry }) => ({
        ...entry,
        results: { error: expect.stringMatching(error) },
      })),
    );
  });

  it('must be there: a call whose intent cannot be written does not run', async () => {
    let ran = 0;
    let isFull = true;
    const around = (store: Store): Store => ({
      ...store,
      addStep: async (claim, turnId, step, now, more) => {
        if (isFull && more?.entries?.some(({ kind }) => kind === 'intent')) {
          isFull = false;
          expect(ran).toBe(0);
          throw new Fault('store_unavailable', 'disk full');
        }
        return store.addStep(claim, turnId, step, now, more);
      },
    });
    await open([{ name: 'act', arguments: {} }], {
      around,
      tools: [tool('act', async () => done(`${++ran}`))],
    });
    await ask();
    await expect.poll(() => on.texts(), { timeout: 5_000 }).toEqual(['done']);
    expect(ran).toBe(1);
    expect(isFull).toBe(false);
  });

  it('gives a tool neither extra keys nor an authorisation of the model’s making', async () => {
    const seen: unknown[] = [];
    const strict = tool(
      'strict',
      async (given, { authorisation }) => {
        seen.push(given, authorisation?.chatId, authorisation?.controlChats);
        return done('ok');
      },
      { parameters: z.object({ text: z.string() }) },
    );
    const forged = { chatId: 'test_2', controlChats: ['test_1'] };
    const given = { text: 'x', authorisation: forged, __microclaw_auth: forged, chat_id: 'test_2' };
    await open([{ name: 'strict', arguments: given }], { tools: [strict] });
    await ask();
    expect(seen).toEqual([{ text: 'x' }, 'test_1', []]);
  });
});

describe('a call that is cut off', () => {
  it.each(['low', 'medium'] as const)('by the end of the process is not run again: risk %s', async (risk) => {
    let ran = 0;
    const act = tool('act', () => new Promise<never>(() => void ran++), { risk });
    await open([{ name: 'act', arguments: {} }], { tools: [act] });
    await on.say('go');
    await expect.poll(() => ran).toBe(1);
    expect(await callsOf('act')).toMatchObject([{ status: 'pending' }]);
    const [before] = await callsOf('act');
    for (let n = 0; n < 2; n++) {
      on = await on.die();
      on.answer(() => 'done');
      await on.settled();
    }
    expect(ran).toBe(1);
    const [after] = await callsOf('act');
    expect(after).toMatchObject({
      ...{ id: before?.id, status: 'interrupted' },
      results: { error: expect.stringContaining('outcome is unknown') },
    });
  });

  it('is told to the model, and to the chat once', async () => {
    const act = tool('act', () => new Promise<never>(() => {}));
    await open([{ name: 'act', arguments: {} }], { tools: [act] });
    await on.say('go');
    await expect.poll(async () => (await callsOf('act')).length).toBe(1);
    on = await on.die();
    on.answer(() => new Promise(() => {}));
    await expect.poll(() => on.texts()).toHaveLength(1);
    const first = on.texts();
    on = await on.die();
    on.answer((request) => request.messages.at(-1)?.content ?? '');
    await on.settled();
    expect([...first, ...on.texts()]).toEqual([
      'I was cut off while `act` ran: I cannot tell whether it was done, and do not run it again by myself.',
      expect.stringMatching(/^Interrupted: .*outcome is unknown/),
    ]);
  });

  it('is told once, though the process ends again before the model was', async () => {
    let begun = 0;
    let holds = false;
    const act = tool('act', () => new Promise<never>(() => void begun++));
    const around = (store: Store): Store => ({
      ...store,
      addStep: (claim, turnId, step, now, more) =>
        holds && step.kind === 'result'
          ? new Promise<never>(() => {})
          : store.addStep(claim, turnId, step, now, more),
    });
    await open([{ name: 'act', arguments: {} }], { around, tools: [act] });
    await on.say('go');
    await expect.poll(() => begun).toBe(1);
    holds = true;
    on = await on.die();
    await expect.poll(() => on.texts()).toEqual([expect.stringMatching(/^I was cut off while `act` ran/)]);
    holds = false;
    on = await on.die();
    on.answer(() => 'done');
    await on.settled();
    expect(on.texts()).toEqual(['done']);
  });

  it('between action and outcome has run once', async () => {
    let ran = 0;
    let isDead = false;
    const around = (store: Store): Store => ({
      ...store,
      addStep: (claim, turnId, step, now, more) =>
        isDead || step.kind !== 'result'
          ? store.addStep(claim, turnId, step, now, more)
          : new Promise<never>(() => {}),
    });
    await open([{ name: 'act', arguments: {} }], {
      around,
      tools: [tool('act', async () => done(`${++ran}`))],
    });
    await on.say('go');
    await expect.poll(() => ran).toBe(1);
    isDead = true;
    on = await on.die();
    on.answer(() => 'done');
    await on.settled();
    expect(ran).toBe(1);
    expect(await callsOf('act')).toMatchObject([{ status: 'interrupted' }]);
  });

  it.each(['/stop', '/reset'])('by %s is interrupted, too', async (command) => {
    let signal: AbortSignal | undefined;
    const act = tool('act', (_, context) => {
      signal = context.signal;
      return new Promise<never>(() => {});
    });
    await open([{ name: 'act', arguments: {} }], { tools: [act] });
    await on.say('go');
    await expect.poll(() => signal).toBeDefined();
    await on.say(command);
    await on.settled();
    expect(signal?.aborted).toBe(true);
    expect(await callsOf('act')).toMatchObject([
      { status: 'interrupted', results: { error: expect.any(String) } },
    ]);
  });
});

describe('the time of a call', () => {
  it('ends it: its signal is aborted, and the model is told', async () => {
    const clock = manualClock();
    let signal: AbortSignal | undefined;
    const slow = tool(
      'slow',
      (_, context) =>
        new Promise((_resolve, reject) => {
          signal = context.signal;
          context.signal.addEventListener('abort', () => reject(new Fault('internal', 'it was ended')));
        }),
      { timeoutMs: 30_000 },
    );
    await open([{ name: 'slow', arguments: {} }], { clock, tools: [slow] });
    await on.say('go');
    await expect.poll(() => signal).toBeDefined();
    await clock.advance(29_000);
    expect(signal?.aborted).toBe(false);
    await clock.advance(2_000);
    await on.settled();
    expect(signal?.aborted).toBe(true);
    expect(results()[0]).toMatch(/^slow was ended after 30 seconds/);
  });

  it('is two minutes where the tool names none; what ignores its end is given up, with an unknown outcome', async () => {
    const clock = manualClock();
    let begun = 0;
    const deaf = tool('deaf', () => new Promise<never>(() => void begun++));
    await open([{ name: 'deaf', arguments: {} }], { clock, tools: [deaf] });
    await on.say('go');
    await expect.poll(() => begun).toBe(1);
    await clock.advance(121_000);
    expect(on.texts()).toEqual([]);
    await clock.advance(6_000);
    await on.settled();
    expect(results()[0]).toMatch(
      /^deaf did not end within 120 seconds and was given up: its outcome is unknown/,
    );
    expect(await callsOf('deaf')).toMatchObject([{ status: 'interrupted' }]);
  });
});

describe('the order of calls', () => {
  it('is that of the answer, but what only reads runs side by side, eight at most', async () => {
    const log: string[] = [];
    let at = 0;
    let most = 0;
    const gates: (() => void)[] = [];
    const read = tool(
      'read',
      async ({ n }) => {
        log.push(`read ${n}`);
        most = Math.max(most, ++at);
        await new Promise<void>((resolve) => gates.push(resolve));
        at--;
        return done(`read ${n}`);
      },
      { risk: 'low' },
    );
    const write = tool('write', async ({ n }) => {
      log.push(`write ${n} with ${at} reads`);
      return done(`write ${n}`);
    });
    const reads = Array.from({ length: 10 }, (_, n) => ({ name: 'read', arguments: { n } }));
    const calls = [
      ...reads,
      { name: 'write', arguments: { n: 10 } },
      { name: 'write', arguments: { n: 11 } },
      { name: 'read', arguments: { n: 12 } },
    ];
    await open(calls, { tools: [read, write] });
    await on.say('go');
    await expect.poll(() => gates.length).toBe(8);
    // The last first: the model is told in the order of the calls.
    for (let opened = 0; opened < 11; opened++) {
      await expect.poll(() => gates.length).toBeGreaterThan(0);
      gates.pop()?.();
    }
    await on.settled();
    expect(most).toBe(8);
    expect(log.slice(10)).toEqual(['write 10 with 0 reads', 'write 11 with 0 reads', 'read 12']);
    expect(results()).toEqual([...reads.map((_, n) => `read ${n}`), 'write 10', 'write 11', 'read 12']);
    expect((await turns()).every(({ status }) => status === 'completed')).toBe(true);
  });

  it('is kept after an end of the process: results that were stored stay, the others are interrupted', async () => {
    let ran = 0;
    const read = tool(
      'read',
      async ({ n }) => (++ran && n === 1 ? new Promise<never>(() => {}) : done(`read ${n}`)),
      {
        risk: 'low',
      },
    );
    await open(
      [0, 1, 2].map((n) => ({ name: 'read', arguments: { n } })),
      { tools: [read] },
    );
    await on.say('go');
    await expect
      .poll(async () => (await callsOf('read')).map(({ status }) => status).sort())
      .toEqual(['completed', 'completed', 'pending']);
    on = await on.die();
    on.answer(() => 'done');
    await on.settled();
    expect(ran).toBe(3);
    expect(results()).toEqual(['read 0', expect.stringMatching(/^Interrupted/), 'read 2']);
  });

  it('may hold one wait at a time; the others are told so', async () => {
    const wait = tool('wait', async ({ n }) => ({ waitsFor: `w-${n}`, until: null }), { risk: 'low' });
    await open(
      [0, 1].map((n) => ({ name: 'wait', arguments: { n } })),
      { tools: [wait] },
    );
    await on.say('go');
    await on.settled();
    await on.conversation.resume({ waitsFor: 'w-0', content: 'came', failed: false });
    await on.settled();
    expect(results()).toEqual(['came', expect.stringMatching(/^Not waited for/)]);
    expect(await callsOf('wait')).toMatchObject([
      { status: 'completed', results: { error: expect.any(String) } },
      { status: 'completed', results: { output: 'came' } },
    ]);
  });
});

describe('flushes', () => {
  it('are on the record with nobody’s message as their cause, and what a crash cut off is interrupted', async () => {
    on = await workbench({ memoryTools: true, settings: { compactAfterMessages: 4, keepRecentMessages: 2 } });
    const script = (request: { messages: { role: string; content: string }[] }): Answer => {
      const isFlush = request.messages.some(({ content }) => content.startsWith('Memory flush.'));
      if (!isFlush || request.messages.at(-1)?.role === 'tool') return 'fine';
      return { calls: [{ name: 'write_tiered_memory', arguments: { tier: 3, content: '- tea' } }] };
    };
    on.answer(script);
    for (const text of ['one', 'two', 'three', 'four']) {
      await on.say(text);
      await on.settled();
    }
    await on.conversation.resting();
    // One or two: the window may fill up again while the first flush is still under way, or after it.
    const made = await callsOf('write_tiered_memory');
    for (const call of made) {
      expect(call).toMatchObject({
        agent: 'default',
        parent_event_id: null,
        status: 'completed',
        results: { output: expect.any(String) },
      });
    }
    const [left] = made.map(({ timestamp_outcome: _, ...entry }) => ({
      ...entry,
      status: 'pending' as const,
      results: null,
    }));
    if (!left) throw new Error('no entry');
    const intent = (id: string) => ({
      ...({ kind: 'intent', chatId: 'test_1', room: 'test_1', personaId: 'default', turnId: null } as const),
      entry: { ...left, id },
    });
    await on.store.append([intent('turn-flush-9-a')], 'test');
    on = await on.die();
    on.answer(script);
    await on.settled();
    expect((await turns()).find(({ id }) => id === 'turn-flush-9-a')?.status).toBe('interrupted');
    expect(on.texts()).toEqual([]);
  });
});
