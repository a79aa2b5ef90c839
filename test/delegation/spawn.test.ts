/** Delegation over a real store: what is refused before anything begins, how many may run, and that a call begins one task. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Agents, Delegation, TaskParent } from '../../src/core/task.js';
import { createDelegation } from '../../src/delegation/tasks.js';
import { type Workbench, workbench } from '../harness/conversation.js';
import { LEAST_TASK } from './viap/fixtures.js';

let on: Workbench;
let delegation: Delegation;
let ids: number;

const agents = {
  async find(id) {
    if (id !== 'utility') return { ok: false, reason: `There is no agent "${id}". There are: utility.` };
    const definition = { id, model: null, prompt: '', tools: [], timeoutMinutes: null, maxRounds: null };
    return { ok: true, agent: definition };
  },
} as Agents;

const wish = (callId: string, more: Partial<TaskParent> & { agentId?: string; task?: unknown } = {}) => ({
  ...{ agentId: 'utility', task: LEAST_TASK as unknown, callId, turnId: 'turn-1', tainted: false },
  ...{ chatId: 'test_1', room: 'test_1', personaId: 'default', senderId: 'test_1', ...more },
});

beforeEach(async () => {
  on = await workbench();
  await on.say('hello');
  await on.settled();
  ids = 0;
  delegation = createDelegation({
    ...{ store: on.store, agents, clock: { now: () => 7_000 } },
    newId: () => `task-${++ids}`,
  });
});
afterEach(() => on.close());

const stored = () => on.store.tasks(100);

describe('a task that is given', () => {
  it('is stored before it begins, with where it comes from, and is accepted at once', async () => {
    const answer = await delegation.spawn({
      ...wish('c1', { room: 'test_1/7', tainted: true }),
      eventId: 'evt-7',
    });
    expect(answer).toEqual({
      ok: true,
      taskId: 'task-1',
      said: expect.stringMatching(/^Accepted: utility works on it/),
    });
    expect(await on.store.task('task-1')).toMatchObject({
      ...{ id: 'task-1', agent: 'utility', goal: 'All is tidy', status: 'pending', createdAt: 7_000 },
      request: { messages: [], plan: null, artifacts: [], memory: [], viap: LEAST_TASK, eventId: 'evt-7' },
      parent: {
        ...{ chatId: 'test_1', room: 'test_1/7', personaId: 'default', senderId: 'test_1', tainted: true },
        ...{ turnId: 'turn-1', callId: 'c1' },
      },
    });
  });

  it('is one for one call, however often that comes', async () => {
    const [first, second] = await Promise.all([delegation.spawn(wish('c1')), delegation.spawn(wish('c1'))]);
    expect(second).toEqual(first);
    expect(await stored()).toHaveLength(1);
    expect(await delegation.spawn(wish('c1', { task: { ...LEAST_TASK, goal: 'another' } }))).toEqual({
      ...{ ok: false, reason: 'Not begun: this very call has begun another task already.' },
    });
    expect(await delegation.spawn(wish('c2'))).toMatchObject({ ok: true, taskId: 'task-4' });
    expect(await delegation.spawn(wish('c1', { turnId: 'turn-2' }))).toMatchObject({ ok: true });
  });

  it('is refused where it is none, or for nobody, and nothing is stored', async () => {
    const refused = [
      [{ agentId: 'utilty' }, 'There is no agent "utilty". There are: utility.'],
      [{ task: { ...LEAST_TASK, goal: undefined } }, 'it needs goal (a text).'],
      [{ task: `${JSON.stringify(LEAST_TASK)} `.repeat(2) }, 'There are 2 tasks in it'],
      [{ task: 'tidy up, please' }, 'There is no task in it'],
    ] as const;
    for (const [more, reason] of refused) {
      expect(await delegation.spawn(wish('c1', more))).toEqual({
        ok: false,
        reason: expect.stringContaining(reason),
      });
    }
    expect(await stored()).toEqual([]);
  });
});

describe('the number of tasks', () => {
  it('is five in a room and eight in all, counted until they are over', async () => {
    for (const callId of ['1', '2', '3', '4', '5']) {
      expect(await delegation.spawn(wish(callId))).toMatchObject({ ok: true });
    }
    const sixth = await delegation.spawn(wish('6'));
    expect(sixth).toEqual({
      ok: false,
      reason: expect.stringMatching(/^Not begun: 5 tasks of this conversation/),
    });
    for (const callId of ['7', '8', '9']) {
      expect(await delegation.spawn(wish(callId, { room: 'test_1/7' }))).toMatchObject({ ok: true });
    }
    const ninth = await delegation.spawn(wish('10', { room: 'test_1/8' }));
    expect(ninth).toEqual({
      ok: false,
      reason: expect.stringMatching(/^Not begun: 8 tasks are being worked on/),
    });
    // The same call again is no further task.
    expect(await delegation.spawn(wish('1'))).toMatchObject({ ok: true });
    await on.store.tellTask('task-1', 'stop', 8_000);
    expect(await delegation.spawn(wish('6'))).toMatchObject({ ok: true });
    expect((await stored()).filter(({ status }) => status === 'pending')).toHaveLength(8);
  });
});
