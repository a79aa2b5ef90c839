/** One request to an agent: the same loop as a turn, on record, paid for, and ended by whatever ends it. */

import { afterEach, describe, expect, it, vi } from 'vitest';
import { toolSet } from '../../../src/conversation/turn/call.js';
import type { Authorisation } from '../../../src/core/authorisation.js';
import type { GuppiEvent } from '../../../src/core/journal.js';
import type { ModelMessage } from '../../../src/core/model.js';
import type { ToolContext, TurnKind } from '../../../src/core/tool.js';
import { journalOf } from '../../contract/store/words.js';
import type { Answer } from '../../harness/conversation.js';
import { CONTROL, type Desk, desk, done, RULES, tool } from './desk.js';

let at: Desk;
afterEach(() => at.close());

const never = new AbortController().signal;

/** Calls these, one answer after the other, and then says `done`. */
function calling(...answers: { name: string; arguments: object }[][]) {
  let n = 0;
  at.on.answer((): Answer => {
    const calls = answers[n++];
    return calls ? { text: `step ${n}`, calls } : 'done';
  });
}
const results = (messages: readonly ModelMessage[]) =>
  messages.flatMap((message) => (message.role === 'tool' ? [message.content] : []));

describe('what it does', () => {
  it('is on record before it runs, under the agent, and ends with its outcome', async () => {
    let during: unknown;
    at = await desk({
      tools: [
        tool('look', async () => {
          during = await at.calls('look');
          return done('a rose');
        }),
      ],
    });
    const task = await at.task('t1', {});
    await at.on.say('hello');
    await at.on.settled();
    calling([{ name: 'look', arguments: { at: 'it' } }]);
    const caused = { ...task, request: { ...task.request, eventId: 'evt-7' } };
    const end = await at.on.conversation.work.do(at.ask(caused, 'go'), never);
    expect(end).toMatchObject({ kind: 'answered', text: 'done', tainted: false, wasExternalRefused: false });
    expect(during).toMatchObject([
      {
        ...{ agent: 'utility', status: 'pending', parent_event_id: 'evt-7', reasoning: 'step 1' },
        action: { tool: 'look', at: 'it' },
      },
    ]);
    expect(await at.calls('look')).toMatchObject([{ status: 'completed', results: { output: 'a rose' } }]);
    const events = await at.on.store.taskEvents('t1');
    expect(events.filter(({ kind }) => kind !== 'status')).toMatchObject([
      { kind: 'tool-call', tool: 'look', arguments: '{"at":"it"}' },
      { kind: 'tool-result', tool: 'look', failed: false, content: 'a rose' },
    ]);
  });

  it('goes on in the next request from what was said, with ids of its own', async () => {
    at = await desk({ tools: [tool('look', async () => done('a rose'))] });
    const task = await at.task();
    calling([{ name: 'look', arguments: {} }]);
    const first = await at.on.conversation.work.do(at.ask(task, 'go'), never);
    expect(first.messages.map(({ role }) => role)).toEqual([
      ...['system', 'user', 'assistant', 'tool', 'assistant'],
    ]);
    calling([{ name: 'look', arguments: {} }]);
    const messages: ModelMessage[] = [...first.messages, { role: 'user', content: 'again' }];
    const second = await at.on.conversation.work.do(at.ask(task, '', { messages, round: 1 }), never);
    expect(second.steps.filter(({ kind }) => kind === 'result')).toHaveLength(1);
    const ids = second.messages.flatMap((message) => (message.role === 'tool' ? [message.callId] : []));
    expect(new Set(ids).size).toBe(2);
    expect(await at.calls('look')).toHaveLength(2);
  });

  it('is not shown a secret of its environment by any tool: a command may have written it down', async () => {
    at = await desk({
      tools: [tool('look', async () => done('API_TOKEN=hunter2-hunter2'), { risk: 'low' })],
    });
    const task = await at.task();
    calling([{ name: 'look', arguments: {} }]);
    const ask = at.ask(task, 'go');
    const place = { ...ask.place, env: { API_TOKEN: 'hunter2-hunter2' } };
    const end = await at.on.conversation.work.do({ ...ask, place }, never);
    expect(end.messages).toContainEqual(expect.objectContaining({ content: 'API_TOKEN=[redacted]' }));
    expect(JSON.stringify(await at.calls('look'))).not.toContain('hunter2');
  });

  it('cuts and cleans what its course says', async () => {
    const long = `${'x'.repeat(1_995)} sk-secret ${'y'.repeat(100)}`;
    at = await desk({
      tools: [tool('look', async () => done(long))],
      clean: (text) => text.replaceAll('sk-secret', '[redacted]'),
    });
    const task = await at.task();
    calling(
      [{ name: 'look', arguments: { key: 'sk-secret' } }],
      [{ name: `n${'o'.repeat(500)}`, arguments: {} }],
    );
    await at.on.conversation.work.do(at.ask(task, 'go'), never);
    const said = JSON.stringify(await at.on.store.taskEvents(task.id));
    expect(said).not.toContain('sk-secret');
    expect(said).not.toContain('sk-');
    expect(said).toContain('<<truncated due to event-max-chars=2000>>');
    expect(said).not.toContain(`"tool":"n${'o'.repeat(100)}`);
  });

  it('gives tools the chat, the persona and the rights of whoever asked, and who really acts', async () => {
    const given: (Authorisation | undefined)[] = [];
    const kinds: TurnKind[] = [];
    const look = tool('look', async (_, { authorisation }: ToolContext) => {
      given.push(authorisation);
      return done(String(await authorisation?.asker.isOwner()));
    });
    at = await desk({
      toolsFor: (kind) => {
        kinds.push(kind);
        return toolSet([look]);
      },
    });
    await at.on.say('hello');
    await at.on.say('hello', {
      chat: { address: '9', kind: 'direct', title: 'Olga' },
      sender: { address: '9', name: 'Olga', administrator: false },
    });
    await at.on.settled();
    const parents = [
      { senderId: 'test_1' },
      { chatId: 'test_9', room: 'test_9', senderId: 'test_9' },
      { chatId: 'test_9', room: 'test_9', senderId: 'test_9', tainted: true },
      { chatId: 'test_9', room: 'test_9', senderId: '' },
      null,
    ];
    const said: string[] = [];
    for (const [n, parent] of parents.entries()) {
      const task = await at.task(`t${n}`, parent);
      calling([{ name: 'look', arguments: {} }]);
      const end = await at.on.conversation.work.do(at.ask(task, 'go'), never);
      said.push(...results(end.messages));
      expect(end.tainted).toBe(parent?.tainted === true);
    }
    expect(said).toEqual(['false', 'true', 'false', 'false', 'true']);
    expect(given[1]).toMatchObject({
      ...{ chatId: 'test_9', personaId: 'default', senderId: 'test_9', channel: 'test' },
      ...{ controlChats: ['test_9'], agent: { id: 'utility', taskId: 't1', cwd: '/w' } },
    });
    expect(given[4]).toMatchObject({ chatId: 'board_main', personaId: 'default', controlChats: [] });
    expect(kinds.filter(({ kind }) => kind === 'agent')).toHaveLength(5);
    expect(kinds.at(-1)).toMatchObject({ kind: 'agent', chatId: 'board_main', allowed: ['files', 'shell'] });
  });

  it('is bounded in rounds by its agent, and in repeating itself', async () => {
    let ran = 0;
    at = await desk({
      tools: [
        tool('look', async () => {
          ran++;
          return done('a rose');
        }),
      ],
    });
    const task = await at.task();
    at.on.answer((request) =>
      request.mayCall === false ? 'enough' : { calls: [{ name: 'look', arguments: { n: ran } }] },
    );
    const ask = at.ask(task, 'go');
    const end = await at.on.conversation.work.do({ ...ask, agent: { ...ask.agent, maxRounds: 4 } }, never);
    expect(end).toMatchObject({ kind: 'answered', text: 'enough' });
    expect(ran).toBe(4);
    ran = 0;
    at.on.answer((request) =>
      request.mayCall === false ? 'enough' : { calls: [{ name: 'look', arguments: {} }] },
    );
    await at.on.conversation.work.do({ ...ask, round: 1 }, never);
    expect(ran).toBe(3);
  });

  it('is told that there is no such tool where it calls one that agents do not have', async () => {
    at = await desk({ tools: [tool('look', async () => done('a rose'))] });
    const task = await at.task();
    calling([{ name: 'sessions_spawn', arguments: { agentId: 'utility' } }]);
    const end = await at.on.conversation.work.do(at.ask(task, 'go'), never);
    expect(results(end.messages)).toEqual(['There is no tool named sessions_spawn. There are: look.']);
    expect(end.wasExternalRefused).toBe(false);
  });

  it('tells owners once which tools its requests leave out', async () => {
    const some = toolSet([tool('look', async () => done('a rose'))]);
    const leftOut = ['mcp_shop_buy', 'mcp_shop_sell'];
    at = await desk({ toolsFor: ({ kind }) => (kind === 'agent' ? { ...some, leftOut } : some) });
    await at.on.say('hello', CONTROL);
    await at.on.settled();
    for (const id of ['t1', 't2']) {
      const task = await at.task(id);
      calling();
      await at.on.conversation.work.do(at.ask(task, 'go'), never);
    }
    await vi.waitFor(() => expect(at.textsTo('9')).toHaveLength(2));
    await at.on.deliver.idle('test');
    expect(at.textsTo('9').slice(1)).toEqual([
      'There are more tools than the 1 that one request to a model offers (tools.max_offered), so personas do not have `mcp_shop_buy`, `mcp_shop_sell`. ' +
        'List under mcp.servers.NAME.tools those that are needed; `doctor` names all that are left out.',
    ]);
  });

  it('is refused, in the words of the contract, an external tool that agents do not have', async () => {
    const post = tool('send_message', async () => done('sent'), { isExternal: true });
    const look = tool('look', async () => done('a rose'));
    at = await desk({ toolsFor: () => ({ ...toolSet([look]), withheld: [post] }) });
    const task = await at.task();
    calling([{ name: 'send_message', arguments: { text: 'x' } }]);
    const end = await at.on.conversation.work.do(at.ask(task, 'go'), never);
    expect(results(end.messages)).toEqual([
      'requires explicit owner instruction: send_message was not run, for it leaves this machine, and you do not have it on this task. Do without it, and say so in your report.',
    ]);
    expect(end.wasExternalRefused).toBe(true);
    expect(await at.calls('send_message')).toMatchObject([{ status: 'completed', action: { text: 'x' } }]);
  });

  it('is tainted by words from outside, also in the next request', async () => {
    at = await desk({ tools: [tool('look', async () => done('a rose'), { isFromOutside: true })] });
    const task = await at.task();
    calling([{ name: 'look', arguments: {} }]);
    const first = await at.on.conversation.work.do(at.ask(task, 'go'), never);
    expect(first.tainted).toBe(true);
    calling();
    const messages: ModelMessage[] = [...first.messages, { role: 'user', content: 'more' }];
    const second = await at.on.conversation.work.do(at.ask(task, '', { messages, round: 1 }), never);
    expect(second).toMatchObject({ kind: 'answered', steps: [], tainted: true });
  });
});

describe('what it costs', () => {
  const usage = { inputTokens: 70, outputTokens: 30 };
  const limits = {
    ...{ messagesPerMinute: null, tokensPerChat: 150, tokensPerPersona: null, tokensPerPerson: null },
    ...{
      tokensPerDay: null,
      moneyPerChat: null,
      moneyPerPersona: null,
      moneyPerPerson: null,
      moneyPerDay: null,
    },
  };
  const spent = async (chatId: string) =>
    (await at.on.store.usage({ chatId, personId: null, since: 0, now: Date.UTC(2100, 0) })).personas.map(
      ({ personaId, usage: used }) => [personaId, used.inputTokens],
    );

  it('is laid to whoever delegated it, and to the board where a program did', async () => {
    at = await desk();
    at.on.answer(() => ({ text: 'ok', usage }));
    await at.on.say('hello');
    await at.on.settled();
    for (const [id, parent] of [
      ['t1', {}],
      ['t2', null],
    ] as const) {
      await at.on.conversation.work.do(at.ask(await at.task(id, parent), 'go'), never);
    }
    expect(await spent('test_1')).toEqual([['default', 140]]);
    expect(await spent('board_main')).toEqual([['default', 70]]);
  });

  it('ends at a limit, with its plain sentence; what was used until then is stored', async () => {
    at = await desk({ settings: { limits }, tools: [tool('look', async () => done('x'))] });
    at.on.answer(() => ({ usage, calls: [{ name: 'look', arguments: { n: Math.random() } }] }));
    const end = await at.on.conversation.work.do(at.ask(await at.task(), 'go'), never);
    expect(end).toMatchObject({ kind: 'failed', fault: { code: 'limit_chat' } });
    expect(end.messages.at(-1)).toMatchObject({ role: 'tool', content: 'x' });
    expect(await spent('board_main')).toEqual([['default', 140]]);
  });

  it('is stored also where it was dropped', async () => {
    const over = new AbortController();
    at = await desk({
      tools: [
        tool('look', async () => {
          over.abort();
          return done('x');
        }),
      ],
    });
    at.on.answer(() => ({ usage, calls: [{ name: 'look', arguments: {} }] }));
    const end = await at.on.conversation.work.do(at.ask(await at.task(), 'go'), over.signal);
    expect(end.kind).toBe('dropped');
    expect(await spent('board_main')).toEqual([['default', 70]]);
  });
});

describe('what ends it', () => {
  it('cuts a call off: its result says so, and so does the journal; one that had not begun says that', async () => {
    const over = new AbortController();
    at = await desk({
      tools: [
        tool('hang', (_, { signal }) => {
          over.abort();
          return new Promise((_resolve, reject) => {
            const end = () => reject(new Error('aborted'));
            if (signal.aborted) end();
            else signal.addEventListener('abort', end);
          });
        }),
      ],
    });
    const task = await at.task();
    calling([
      { name: 'hang', arguments: { n: 1 } },
      { name: 'hang', arguments: { n: 2 } },
    ]);
    const end = await at.on.conversation.work.do(at.ask(task, 'go'), over.signal);
    expect(end.kind).toBe('dropped');
    expect(results(end.messages)).toEqual([
      'Interrupted: this was ended while it ran. Its outcome is unknown; check before you repeat it.',
      'Not run: what you were doing was ended before it came to this.',
    ]);
    expect(await at.calls('hang')).toMatchObject([{ status: 'interrupted', action: { n: 1 } }]);
    // What was cut off can be gone on from.
    at.on.answer(() => 'fine');
    const messages: ModelMessage[] = [...end.messages, { role: 'user', content: 'do this first' }];
    const next = await at.on.conversation.work.do(at.ask(task, '', { messages, round: 1 }), never);
    expect(next).toMatchObject({ kind: 'answered', text: 'fine' });
  });

  it('drops it where the task is over: nothing more is run', async () => {
    let ran = 0;
    at = await desk({
      tools: [
        tool('look', async () => {
          ran++;
          await at.on.store.tellTask('task-1', 'stop', at.clock.now());
          return done('x');
        }),
      ],
    });
    const task = await at.task();
    calling([{ name: 'look', arguments: { n: 1 } }], [{ name: 'look', arguments: { n: 2 } }]);
    const end = await at.on.conversation.work.do(at.ask(task, 'go'), never);
    expect(end.kind).toBe('dropped');
    expect(ran).toBe(1);
    expect(await at.calls('look')).toMatchObject([{ status: 'interrupted' }]);
  });

  it('is a model that hangs, for as long as the signal lets it', async () => {
    const over = new AbortController();
    at = await desk();
    at.on.answer(
      (_, signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve('late'))),
    );
    const working = at.on.conversation.work.do(at.ask(await at.task(), 'go'), over.signal);
    await new Promise((resolve) => setImmediate(resolve));
    over.abort();
    expect(await working).toMatchObject({ kind: 'dropped', steps: [] });
  });

  it('is a fault of the model, and a chat that is not known', async () => {
    at = await desk();
    at.on.answer(() => ({ fault: 'model_unreachable' }));
    const end = await at.on.conversation.work.do(at.ask(await at.task(), 'go'), never);
    expect(end).toMatchObject({ kind: 'failed', fault: { code: 'model_unreachable' }, steps: [] });
    const gone = await at.task('t2', { chatId: 'test_77', room: 'test_77' });
    expect(await at.on.conversation.work.do(at.ask(gone, 'go'), never)).toMatchObject({
      ...{ kind: 'failed', fault: { code: 'internal' } },
    });
  });

  it('is no end that a tool is broken', async () => {
    at = await desk({
      tools: [
        tool('broken', async () => {
          throw new Error('a bug');
        }),
      ],
    });
    const task = await at.task();
    calling([{ name: 'broken', arguments: {} }]);
    expect((await at.on.conversation.work.do(at.ask(task, 'go'), never)).kind).toBe('answered');
  });
});

describe('a request that does not fit', () => {
  const long = 'word '.repeat(400);
  const before: ModelMessage[] = [
    { role: 'system', content: 'You work.' },
    { role: 'user', content: 'look' },
    { role: 'assistant', content: '', calls: [{ id: 'a', name: 'look', arguments: '{}' }] },
    { role: 'tool', callId: 'a', content: `<tool_result untrusted="yes">\n${long}\n</tool_result>` },
    { role: 'assistant', content: 'seen', calls: [] },
    { role: 'user', content: 'go on' },
  ];

  it('goes without long results of earlier requests, whose taint stays', async () => {
    at = await desk();
    at.on.answer(({ messages }) =>
      JSON.stringify(messages).includes(long) ? { fault: 'context_too_long' } : 'fits',
    );
    const task = await at.task();
    const end = await at.on.conversation.work.do(at.ask(task, '', { messages: before, round: 1 }), never);
    expect(end).toMatchObject({ kind: 'answered', text: 'fits', tainted: true });
    expect(results(end.messages)[0]).toContain('Left out');
    expect(before[3]?.content).toContain(long);
  });

  it('is not even sent where our own estimate says so', async () => {
    at = await desk({ contextTokens: 1_500 });
    const task = await at.task();
    const messages = before.map((each) =>
      each.role === 'tool' ? { ...each, content: long.repeat(20) } : each,
    );
    await at.on.conversation.work.do(at.ask(task, '', { messages, round: 1 }), never);
    expect(at.on.asked).toHaveLength(1);
    expect(JSON.stringify(at.on.asked)).not.toContain(long);
  });

  it('fails in plain words where nothing is left to leave out', async () => {
    at = await desk();
    at.on.answer(() => ({ fault: 'context_too_long' }));
    const end = await at.on.conversation.work.do(at.ask(await at.task(), 'x'.repeat(5_000)), never);
    expect(end).toMatchObject({ kind: 'failed', fault: { code: 'task_too_long' } });
    expect(end.kind === 'failed' && end.fault.sentence).not.toContain('/reset');
    expect(at.on.asked).toHaveLength(1);
  });
});

describe('a call that begins what outlives its turn', () => {
  it('leaves its entry in the journal open; its result is a step as always', async () => {
    const spawn = tool('spawn', async () => ({ ...done('begun'), isBeginning: true }));
    at = await desk({ tools: [spawn], rules: RULES });
    at.on.answer(
      (request): Answer =>
        request.messages.at(-1)?.role === 'tool'
          ? `so: ${request.messages.at(-1)?.content}`
          : { calls: [{ name: 'spawn', arguments: {} }] },
    );
    await at.on.say('go');
    await at.on.settled();
    expect(at.textsTo('1')).toEqual(['so: begun']);
    expect(await at.calls('spawn')).toMatchObject([{ status: 'pending', results: null, agent: 'default' }]);
    const events = (await journalOf(at.on.store)).flatMap(({ entry }) =>
      entry.type === 'GUPPIEvent' ? [entry] : [],
    );
    expect(events.filter((each: GuppiEvent) => each.event_type === 'TaskCompleted')).toEqual([]);
  });
});
