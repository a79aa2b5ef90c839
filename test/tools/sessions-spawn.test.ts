/** `sessions_spawn`: who may hand a task to an agent, with what, and what of it stands in the journal. */
import { describe, expect, test } from 'vitest';
import { ZodType, z } from 'zod';
import type { Authorisation } from '../../src/core/authorisation.js';
import type { Delegation } from '../../src/core/task.js';
import type { ToolContext } from '../../src/core/tool.js';
import { sessionsSpawn } from '../../src/tools/sessions-spawn.js';
import { askerWho } from '../harness/asker.js';
import { quietLog } from '../harness/quiet.js';

const caller: Authorisation = {
  ...{ chatId: 'test_1', personaId: 'luna', senderId: 'test_7', channel: 'test', controlChats: [] },
  asker: askerWho(),
};
const place = {
  id: 'utility',
  taskId: 't',
  cwd: null,
  roots: [],
  env: {},
  space: '/s',
  shared: { folder: '/shared', mayWrite: true },
};

function setUp(
  answer: Awaited<ReturnType<Delegation['spawn']>> = { ok: true, taskId: 't1', said: 'Accepted.' },
) {
  const wishes: Parameters<Delegation['spawn']>[0][] = [];
  const tool = sessionsSpawn({
    spawn: async (wish) => {
      wishes.push(wish);
      return answer;
    },
    given: async ({ turnId, callId }) => (`${turnId} ${callId}` === 't7 c1' ? 'Accepted before.' : null),
  });
  const { parameters } = tool;
  if (!(parameters instanceof ZodType)) throw new Error('the tool has no zod schema');
  const context: ToolContext = {
    ...{ authorisation: caller, room: 'test_1/45', turnId: 't7', callId: 'c1', log: quietLog },
    ...{ signal: new AbortController().signal, now: 1, timezone: 'UTC', seen: new Map() },
    cause: { kind: 'turn', personaId: 'luna', turnId: 't7' },
  };
  const call = (given: object, changes: Partial<ToolContext> = {}) =>
    tool.execute(parameters.parse(given), { ...context, ...changes });
  return { tool, parameters, wishes, call, context };
}
const given = { agentId: ' utility ', task: { goal: 'g' } };

test('takes an agent and a task, a text or an object, and both must be there', () => {
  const { tool, parameters } = setUp();
  expect(tool).toMatchObject({ name: 'sessions_spawn', risk: 'medium' });
  expect(z.toJSONSchema(parameters, { io: 'input' })).toMatchObject({ required: ['agentId', 'task'] });
  for (const field of ['viap_version', 'task_id', 'title', 'goal', 'instructions', 'time_budget_min']) {
    expect(tool.description).toContain(field);
  }
  for (const wrong of [
    {},
    { agentId: 'x' },
    { task: 'x' },
    { agentId: '', task: 'x' },
    { agentId: 'x', task: [] },
  ]) {
    expect(parameters.safeParse(wrong).success).toBe(false);
  }
});

test('a call that was cut off is answered as before where its task is there; it says nothing where there is none', async () => {
  const { tool, context } = setUp();
  expect(await tool.outcomeAfterCrash?.(context)).toEqual({
    content: 'Accepted before.',
    failed: false,
    isBeginning: true,
  });
  expect(await tool.outcomeAfterCrash?.({ ...context, callId: 'c2' })).toBeNull();
});

test('hands it on with where it comes from, and its result is a beginning', async () => {
  const { call, wishes } = setUp();
  expect(await call(given, { isTainted: true, eventId: 'evt-7' })).toEqual({
    content: 'Accepted.',
    failed: false,
    isBeginning: true,
  });
  expect(wishes).toEqual([
    {
      ...{ agentId: 'utility', task: { goal: 'g' }, chatId: 'test_1', room: 'test_1/45', personaId: 'luna' },
      ...{ turnId: 't7', callId: 'c1', senderId: 'test_7', tainted: true },
      eventId: 'evt-7',
    },
  ]);
});

test('says whose words it was only if they were one person’s', async () => {
  for (const senders of [[], ['test_7', 'test_8']]) {
    const { call, wishes } = setUp();
    const asker = { ...askerWho(), senders: async () => senders };
    await call(given, { authorisation: { ...caller, asker } });
    expect(wishes).toMatchObject([{ senderId: '', tainted: false }]);
  }
});

test('says why a task was not taken', async () => {
  const { call } = setUp({ ok: false, reason: 'There are: utility.' });
  expect(await call(given)).toEqual({ content: 'There are: utility.', failed: true });
});

describe('is refused', () => {
  test.each([
    ['to an agent', { authorisation: { ...caller, agent: place } }, /^Permission denied: an agent may not/],
    ['without an authorisation', { authorisation: undefined }, /^Permission denied: /],
    ['in a flush', { cause: { kind: 'flush', personaId: 'luna', turnId: null } as const }, /^Tasks can only/],
    ['at night', { cause: { kind: 'night', personaId: 'luna', turnId: 'n' } as const }, /^Tasks can only/],
    ['after a stop', { signal: AbortSignal.abort() }, /^Stopped: /],
  ])('%s', async (_, changes, reason) => {
    const { call, wishes } = setUp();
    expect(await call(given, changes)).toEqual({ content: expect.stringMatching(reason), failed: true });
    expect(wishes).toEqual([]);
  });
});

describe('the journal', () => {
  const journalled = (task: unknown) => setUp().tool.journalled?.({ agentId: 'utility', task });
  const env = { KEY: 'se"cr{et', N: 'secret}' };

  test('says what was given without the values of the environment', () => {
    const task = { title: 'T', inputs: { env, args: ['a'] } };
    const clean = { title: 'T', inputs: { env: { KEY: '[redacted]', N: '[redacted]' }, args: ['a'] } };
    expect(journalled(task)).toEqual({ agentId: 'utility', task: clean });
    for (const space of [0, 2]) {
      const text = `Do this: ${JSON.stringify(task, null, space)} and ${JSON.stringify(task)}`;
      const { task: shown } = journalled(text) as { task: string };
      expect(shown).not.toMatch(/secr|cret/);
      expect(JSON.parse(shown.slice('Do this: '.length, shown.indexOf(' and ')))).toEqual(clean);
    }
  });

  test('says it of whatever is no task, too', () => {
    for (const task of ['', 'tidy up', { inputs: 3 }, { inputs: { env: null } }, {}]) {
      expect(journalled(task)).toEqual({ agentId: 'utility', task });
    }
    const cut = '{"env": {"A": "secret", "N": 5, "B": "secr';
    expect(journalled(cut)).toEqual({
      agentId: 'utility',
      task: '{"env": {"A": "[redacted]", "N": "[redacted]", "B": "[redacted]"',
    });
  });
});
