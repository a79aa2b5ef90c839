/** The store's contract: tasks, as programs give them. One is added within bounds, run by one process, and ends once. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { JournalWrite, MattTurn } from '../../../src/core/journal.js';
import type { Store } from '../../../src/core/store.js';
import {
  BOARD_CHAT,
  MOST_EVENTS,
  type NewTask,
  type Task,
  type TaskBounds,
  type TaskEnd,
  type TaskEvent,
} from '../../../src/core/task.js';
import type { StoreUnderTest } from '../store.js';
import { DAY, HOUR, journalOf, lease, MINUTE, NOW, pruned, recovered } from './words.js';

export const FREE: TaskBounds = { waiting: 5_000, perRoom: 5, delegated: 8 };

export function newTask(id: string, more: Partial<NewTask> = {}): NewTask {
  const request = {
    ...{ messages: [{ role: 'user' as const, content: 'look at the roses' }], plan: null },
    ...{ artifacts: [], memory: ['roses are red'], viap: null },
  };
  return {
    ...{ id, agent: 'utility', goal: 'water the roses', request, parent: null, idempotency: null, now: NOW },
    ...more,
  };
}

export function ending(id: string, more: Partial<TaskEnd> = {}): TaskEnd {
  const result = { text: 'The roses are wet.', summary: 'wet' };
  return { id, status: 'completed', result, error: null, entries: [], tell: null, now: NOW + 9, ...more };
}

/** The entry of a call of a task. */
export function intentOf(taskId: string, id = `turn-${taskId}-c1`, more: object = {}): JournalWrite {
  return {
    ...{ kind: 'intent', chatId: BOARD_CHAT, room: null, personaId: 'default', turnId: taskId, ...more },
    entry: {
      ...{ id, type: 'MattTurn', agent: 'utility', parent_event_id: null },
      ...{ timestamp_intent: new Date(NOW).toISOString(), status: 'pending', reasoning: '' },
      ...{ action: { tool: 'shell', command: 'ls' }, results: null },
    },
  };
}

export async function entryOf(store: Store, id: string): Promise<MattTurn | undefined> {
  const entries = await journalOf(store);
  return entries
    .map(({ entry }) => entry)
    .find((entry): entry is MattTurn => entry.type === 'MattTurn' && entry.id === id);
}

export async function added(store: Store, id: string, more: Partial<NewTask> = {}): Promise<void> {
  expect(await store.addTask(newTask(id, more), FREE)).toEqual({ kind: 'added' });
}

/** The oldest that was delegated, else the oldest of programs. */
export async function claimNext(store: Store, owner = 'me', now = NOW): Promise<Task | null> {
  const delegated = { ...lease(owner, now), of: { channels: ['test'] } };
  return (
    (await store.claimTask(delegated)) ?? (await store.claimTask({ ...lease(owner, now), of: 'programs' }))
  );
}

export async function claimedTask(store: Store, owner = 'me', now = NOW): Promise<Task> {
  const task = await claimNext(store, owner, now);
  expect(task, 'a task to be run').not.toBeNull();
  return task as Task;
}

const ALL = ['steer', 'followup', 'collect'] as const;

export function taskContract(under: StoreUnderTest): void {
  const me = { id: 'k1', owner: 'me' };
  const statuses = async (id: string) =>
    (await under.store.taskEvents(id)).flatMap((event) => (event.kind === 'status' ? [event.status] : []));

  describe('a task', () => {
    it('is as it was given, is run and ends; its course says so', async () => {
      const { store } = under;
      const given = newTask('k1', { request: { ...newTask('x').request, plan: { goal: 'g', steps: [] } } });
      expect(await store.addTask(given, FREE)).toEqual({ kind: 'added' });
      const task = {
        ...{ id: 'k1', agent: 'utility', goal: 'water the roses', request: given.request, parent: null },
        ...{
          status: 'pending',
          createdAt: NOW,
          startedAt: null,
          completedAt: null,
          result: null,
          error: null,
        },
      };
      expect(await store.task('k1')).toEqual(task);
      const running = { ...task, status: 'running', startedAt: NOW + 5 };
      expect(await claimNext(store, 'me', NOW + 5)).toEqual(running);
      expect(await claimNext(store), 'there is no other').toBeNull();
      expect(await store.finishTask(ending('k1'), 'me')).toBe('finished');
      const result = { text: 'The roses are wet.', summary: 'wet' };
      expect(await store.task('k1')).toEqual({
        ...running,
        ...{ status: 'completed', completedAt: NOW + 9, result },
      });
      expect(await store.taskEvents('k1')).toEqual([
        { at: NOW, kind: 'status', status: 'pending' },
        { at: NOW + 5, kind: 'status', status: 'running' },
        { at: NOW + 9, kind: 'status', status: 'completed' },
      ]);
      expect(await store.task('no such')).toBeNull();
      expect(await store.taskEvents('no such')).toEqual([]);
      expect((await store.sizes()).rows.task).toBe(1);
    });

    it('is listed without what was asked for, newest first', async () => {
      const { store } = under;
      for (const [n, agent] of ['utility', 'other', 'utility', 'other'].entries()) {
        await added(store, `k${n}`, { agent });
      }
      const all = await store.tasks(3);
      expect(all.map(({ id }) => id)).toEqual(['k3', 'k2', 'k1']);
      expect(all[0]).not.toHaveProperty('request');
    });

    it('is listed a page at a time, behind the last one of the page before', async () => {
      const { store } = under;
      for (const n of [0, 1, 2, 3, 4]) await added(store, `k${n}`);
      expect((await store.tasks(2, 'k3')).map(({ id }) => id)).toEqual(['k2', 'k1']);
      expect((await store.tasks(2, 'k1')).map(({ id }) => id)).toEqual(['k0']);
      expect(await store.tasks(2, 'k0')).toEqual([]);
      expect(await store.tasks(2, 'nobody'), 'no such task').toEqual([]);
    });

    it('is another’s than a chat’s where a program gave it', async () => {
      await under.store.addTask(newTask('k1'), { waiting: 9, perRoom: 9, delegated: 9 });
      expect(await under.store.tasksElsewhere('test_1')).toEqual(['k1']);
    });

    it('waits only as long as fewer than the bound do, also of two processes at once', async () => {
      const [a, b] = [under.store, await under.another()];
      const answers = await Promise.all(
        Array.from({ length: 8 }, (_, n) =>
          (n % 2 ? a : b).addTask(newTask(`k${n}`), { ...FREE, waiting: 3 }),
        ),
      );
      expect(answers.filter(({ kind }) => kind === 'added')).toHaveLength(3);
      expect(answers).toContainEqual({ kind: 'full', bound: 'waiting' });
      await claimedTask(a);
      expect(await a.addTask(newTask('k9'), { ...FREE, waiting: 3 })).toEqual({ kind: 'added' });
    });

    it('is run by one process, oldest first', async () => {
      const [a, b] = [under.store, await under.another()];
      for (let n = 0; n < 6; n++) await added(a, `k${n}`);
      const taken = await Promise.all(
        Array.from({ length: 8 }, (_, n) => (n % 2 ? claimNext(a, 'a') : claimNext(b, 'b'))),
      );
      const ids = taken.flatMap((task) => task?.id ?? []);
      expect([...ids].sort()).toEqual(['k0', 'k1', 'k2', 'k3', 'k4', 'k5']);
      expect(taken.filter((task) => task === null)).toHaveLength(2);
    });

    it('is noted, told and ended by whoever runs it alone', async () => {
      const { store } = under;
      await added(store, 'k1');
      const other = { id: 'k1', owner: 'other' };
      const tool: TaskEvent = { at: NOW, kind: 'tool-call', callId: 'c1', tool: 'shell', arguments: '{}' };
      const what = { entries: [intentOf('k1')], events: [tool] };
      expect(await store.noteTask(me, what), 'not begun').toBe(false);
      expect(await store.finishTask(ending('k1'), 'me')).toBe('lost');
      await claimedTask(store);
      expect(await store.noteTask(other, what)).toBe(false);
      expect(await store.takeTaskMessages(other, ALL)).toBe('lost');
      expect(await store.finishTask(ending('k1'), 'other')).toBe('lost');
      expect(await entryOf(store, 'turn-k1-c1')).toBeUndefined();
      expect(await store.noteTask(me, what)).toBe(true);
      expect(await entryOf(store, 'turn-k1-c1')).toMatchObject({ status: 'pending' });
      expect((await store.taskEvents('k1')).at(-1)).toEqual(tool);
      expect(await store.finishTask(ending('k1'), 'me')).toBe('finished');
      expect(await store.finishTask(ending('k1', { status: 'error' }), 'me')).toBe('lost');
      expect(await store.noteTask(me, { events: [tool] })).toBe(false);
      expect(await store.task('k1')).toMatchObject({ status: 'completed' });
      // What it began and did not say how it ended has no outcome.
      expect(await entryOf(store, 'turn-k1-c1')).toMatchObject({ status: 'interrupted' });
    });

    it('keeps the newest of its events, in their order', async () => {
      const { store } = under;
      await added(store, 'k1');
      await added(store, 'k2');
      await claimedTask(store);
      const events = Array.from({ length: 300 }, (_, n): TaskEvent[] => [
        { at: n, kind: 'tool-call', callId: `c${n}`, tool: 'shell', arguments: '{}' },
        { at: n, kind: 'tool-result', callId: `c${n}`, tool: 'shell', failed: false, content: 'ok' },
      ]).flat();
      await store.noteTask(me, { events: events.slice(0, 100) });
      await store.noteTask(me, { events: events.slice(100) });
      expect(await store.taskEvents('k1')).toEqual(events.slice(-MOST_EVENTS));
      expect(await store.taskEvents('k2')).toHaveLength(1);
    });

    it('is stopped once, and whoever runs it may not go on', async () => {
      const { store } = under;
      const other = await under.another();
      await added(store, 'k1');
      await claimedTask(store);
      await store.noteTask(me, { entries: [intentOf('k1')] });
      expect(await other.tellTask('k1', 'stop', NOW + 3)).toBe('done');
      expect(await store.tellTask('k1', 'stop', NOW + 4)).toBe('ended');
      expect(await store.tellTask('no such', 'stop', NOW)).toBe('unknown');
      expect(await store.task('k1')).toMatchObject({ status: 'stopped', completedAt: NOW + 3, result: null });
      expect(await statuses('k1')).toEqual(['pending', 'running', 'stopped']);
      expect(await store.noteTask(me, {})).toBe(false);
      expect(await store.finishTask(ending('k1'), 'me')).toBe('lost');
      expect(await entryOf(store, 'turn-k1-c1')).toMatchObject({ status: 'interrupted' });
      await added(store, 'k2');
      expect(await store.tellTask('k2', 'stop', NOW), 'before it began').toBe('done');
      expect(await claimNext(store)).toBeNull();
    });
  });

  describe('a message to a task', () => {
    it('that steers is known of all that run here at once', async () => {
      const { store } = under;
      const running = async () =>
        (await store.runningTasks({ owner: 'me', now: NOW })).sort((a, b) => (a.id < b.id ? -1 : 1));
      for (const id of ['k1', 'k2', 'k3', 'k4']) await added(store, id);
      for (const owner of ['me', 'me', 'me', 'other']) await claimedTask(store, owner);
      await store.tellTask('k1', { mode: 'followup', text: 'a' }, NOW);
      await store.tellTask('k2', { mode: 'steer', text: 'b' }, NOW);
      await store.tellTask('k3', 'stop', NOW);
      expect(await running()).toEqual([
        { id: 'k1', owner: 'me', isSteered: false },
        { id: 'k2', owner: 'me', isSteered: true },
      ]);
      await store.takeTaskMessages({ id: 'k2', owner: 'me' }, ALL);
      expect((await running())[1]).toMatchObject({ id: 'k2', isSteered: false });
    });

    it('is taken once, in order, and keeps it from being completed', async () => {
      const { store } = under;
      await added(store, 'k1');
      expect(await store.tellTask('k1', { mode: 'followup', text: 'a' }, NOW)).toBe('done');
      await claimedTask(store);
      expect(await store.tellTask('k1', { mode: 'steer', text: 'b' }, NOW)).toBe('done');
      for (const text of ['c', 'd']) await store.tellTask('k1', { mode: 'followup', text }, NOW);
      expect(await store.takeTaskMessages(me, ['steer'])).toEqual(['b']);
      expect(await store.takeTaskMessages(me, ['steer'])).toEqual([]);
      expect(await store.takeTaskMessages(me, ALL), 'one by one').toEqual(['a']);
      for (const text of ['e', 'f']) await store.tellTask('k1', { mode: 'collect', text }, NOW);
      for (const text of ['c', 'd']) expect(await store.takeTaskMessages(me, ALL)).toEqual([text]);
      const entries = [intentOf('k1')];
      expect(await store.finishTask(ending('k1', { entries }), 'me')).toBe('message');
      expect(await store.task('k1')).toMatchObject({ status: 'running', result: null });
      expect(await entryOf(store, 'turn-k1-c1'), 'nothing is stored').toBeUndefined();
      expect(await store.takeTaskMessages(me, ALL), 'together').toEqual(['e', 'f']);
      expect(await store.takeTaskMessages(me, ALL)).toEqual([]);
      expect(await store.finishTask(ending('k1'), 'me')).toBe('finished');
      expect(await store.tellTask('k1', { mode: 'collect', text: 'c' }, NOW)).toBe('ended');
      expect(await store.tellTask('k9', { mode: 'collect', text: 'c' }, NOW)).toBe('unknown');
    });

    it.each(['error', 'interrupted'] as const)('keeps none from ending with %s', async (status) => {
      const { store } = under;
      await added(store, 'k1');
      await claimedTask(store);
      await store.tellTask('k1', { mode: 'followup', text: 'a' }, NOW);
      const end = ending('k1', { status, result: null, error: 'It failed.' });
      expect(await store.finishTask(end, 'me')).toBe('finished');
      expect(await store.task('k1')).toMatchObject({ status, error: 'It failed.' });
    });
  });

  describe('a task whose process died', () => {
    it('is left when its lease expires, and ended as interrupted by one of those who find it', async () => {
      const [a, b] = [under.store, await under.another()];
      await added(a, 'k1');
      await added(a, 'k2');
      await claimedTask(a, 'dead');
      await claimedTask(a, 'alive');
      await a.noteTask({ id: 'k1', owner: 'dead' }, { entries: [intentOf('k1')] });
      await a.renewTasks(lease('alive', NOW + MINUTE));
      expect(await b.runningTasks({ owner: 'b', now: NOW + MINUTE - 1 })).toEqual([]);
      await recovered(b, 'b', NOW + MINUTE);
      expect(await entryOf(b, 'turn-k1-c1'), 'it ends with the task').toMatchObject({ status: 'pending' });
      const left = await b.runningTasks({ owner: 'b', now: NOW + MINUTE });
      expect(left).toMatchObject([{ id: 'k1', owner: 'dead' }]);
      const end = ending('k1', { status: 'interrupted', result: null, error: 'The gateway ended.' });
      const both = await Promise.all([a.finishTask(end, 'dead'), b.finishTask(end, 'dead')]);
      expect(both.sort()).toEqual(['finished', 'lost']);
      expect(await b.runningTasks({ owner: 'b', now: NOW + MINUTE })).toEqual([]);
      expect(await claimNext(b, 'b'), 'it is not run again').toBeNull();
      expect(await statuses('k1')).toEqual(['pending', 'running', 'interrupted']);
      expect(await entryOf(b, 'turn-k1-c1')).toMatchObject({
        ...{ status: 'interrupted', results: { error: 'The gateway ended.' } },
      });
      expect(await a.noteTask({ id: 'k2', owner: 'alive' }, {})).toBe(true);
    });

    it('is left at once for the next process of its name', async () => {
      const { store } = under;
      await added(store, 'k1');
      await claimedTask(store);
      expect(await store.runningTasks({ owner: 'me', now: NOW })).toMatchObject([{ id: 'k1' }]);
    });

    it('may still end it, before anybody has noticed', async () => {
      const { store } = under;
      await added(store, 'k1');
      await claimedTask(store, 'slow');
      expect(await store.runningTasks({ owner: 'me', now: NOW + HOUR })).toHaveLength(1);
      expect(await store.finishTask(ending('k1', { now: NOW + HOUR }), 'slow')).toBe('finished');
      const late = ending('k1', { status: 'interrupted', now: NOW + HOUR });
      expect(await store.finishTask(late, 'slow')).toBe('lost');
    });
  });

  describe('a key of a task', () => {
    const key = (hash = 'h1', now = NOW) => ({ idempotency: { key: 'key', hash }, now });

    it('leads to it, however it ended, until another has it', async () => {
      const [store, other] = [under.store, await under.another()];
      expect(await store.task({ key: 'key' })).toBeNull();
      await added(store, 'k1', key());
      expect(await other.task({ key: 'key' })).toMatchObject({ id: 'k1', status: 'pending' });
      const { id } = await claimedTask(store);
      await store.finishTask(ending(id, { status: 'interrupted' }), 'me');
      expect(await other.task({ key: 'key' })).toMatchObject({ id: 'k1', status: 'interrupted' });
      await added(store, 'k2', key());
      expect(await other.task({ key: 'key' })).toMatchObject({ id: 'k2' });
      expect(await other.task({ key: 'another' })).toBeNull();
    });

    it('gives the same task again, also when it is over, also after a restart, and no other body', async () => {
      const { store } = under;
      await added(store, 'k1', key());
      expect(await store.addTask(newTask('k2', key()), { ...FREE, waiting: 1 })).toMatchObject({
        ...{ kind: 'there', task: { id: 'k1', status: 'pending' } },
      });
      expect(await store.addTask(newTask('k3', key('h2')), FREE)).toEqual({ kind: 'conflict' });
      await claimedTask(store);
      await store.finishTask(ending('k1'), 'me');
      const again = await under.another();
      const late = NOW + DAY - 1;
      expect(await again.addTask(newTask('k4', key('h1', late)), FREE)).toMatchObject({
        ...{ kind: 'there', task: { id: 'k1', result: { summary: 'wet' } } },
      });
      expect(await store.tasks(9)).toHaveLength(1);
    });

    it('is another task’s after a day', async () => {
      const { store } = under;
      await added(store, 'k1', key());
      await added(store, 'k2', key('h2', NOW + DAY));
      expect(await store.addTask(newTask('k3', key('h2', NOW + DAY + 1)), FREE)).toMatchObject({
        ...{ kind: 'there', task: { id: 'k2' } },
      });
    });

    it.each([
      ['error', 'there'],
      ['completed', 'there'],
      ['interrupted', 'added'],
    ] as const)('after %s: %s', async (status, kind) => {
      const { store } = under;
      await added(store, 'k1', key());
      await claimedTask(store);
      await store.finishTask(ending('k1', { status }), 'me');
      expect(await store.addTask(newTask('k2', key()), FREE)).toMatchObject({ kind });
      expect(await store.addTask(newTask('k3', key()), FREE)).toMatchObject({ kind: 'there' });
    });

    it('gives the stopped one again', async () => {
      const { store } = under;
      await added(store, 'k1', key());
      await store.tellTask('k1', 'stop', NOW);
      expect(await store.addTask(newTask('k2', key()), FREE)).toMatchObject({
        ...{ kind: 'there', task: { status: 'stopped' } },
      });
    });

    it('gives one task to two processes at the same moment', async () => {
      const [a, b] = [under.store, await under.another()];
      const answers = await Promise.all(
        Array.from({ length: 6 }, (_, n) => (n % 2 ? a : b).addTask(newTask(`k${n}`, key()), FREE)),
      );
      expect(answers.map(({ kind }) => kind).sort()).toEqual(['added', ...Array(5).fill('there')]);
      expect(await b.tasks(9)).toHaveLength(1);
    });

    it('is not needed for the same id', async () => {
      const { store } = under;
      await added(store, 'k1');
      expect(await store.addTask(newTask('k1'), FREE)).toMatchObject({ kind: 'there', task: { id: 'k1' } });
    });
  });

  it('tasks go with their retention, with their course, but no key that lives', async () => {
    const { store } = under;
    await added(store, 'old');
    await added(store, 'keyed', { idempotency: { key: 'key', hash: 'h' } });
    await added(store, 'open');
    for (const id of ['old', 'keyed']) {
      await claimedTask(store);
      await store.tellTask(id, { mode: 'steer', text: 'x' }, NOW);
      const events = Array.from({ length: 20 }, (_, n): TaskEvent => {
        return { at: n, kind: 'tool-call', callId: `c${n}`, tool: 'shell', arguments: '{}' };
      });
      await store.noteTask({ id, owner: 'me' }, { events });
      await store.finishTask(ending(id, { status: 'error' }), 'me');
    }
    await pruned(under.store, NOW + 9, NOW + HOUR, 7);
    expect(await store.tasks(9)).toHaveLength(3);
    await pruned(under.store, NOW + HOUR, NOW + HOUR, 7);
    expect((await store.tasks(9)).map(({ id }) => id)).toEqual(['open', 'keyed']);
    expect(await store.taskEvents('keyed')).toHaveLength(23);
    await pruned(under.store, NOW + HOUR, NOW + 2 * DAY, 7);
    expect((await store.tasks(9)).map(({ id }) => id)).toEqual(['open']);
    // What comes after them has nothing of theirs.
    await added(store, 'next');
    expect(await store.taskEvents('next')).toHaveLength(1);
    await claimedTask(store);
    await claimedTask(store);
    expect(await store.takeTaskMessages({ id: 'next', owner: 'me' }, ALL)).toEqual([]);
  });

  it('tasks of a restored copy are interrupted, and nothing is told', async () => {
    const { store } = under;
    await added(store, 'k1');
    await added(store, 'k2', { idempotency: { key: 'key', hash: 'h' } });
    await claimedTask(store);
    await store.noteTask(me, { entries: [intentOf('k1')] });
    await store.quieten();
    for (const id of ['k1', 'k2']) {
      expect(await store.task(id)).toMatchObject({
        status: 'interrupted',
        error: expect.any(String),
        completedAt: expect.any(Number),
      });
      expect((await statuses(id)).at(-1)).toBe('interrupted');
    }
    expect(await entryOf(store, 'turn-k1-c1')).toMatchObject({ status: 'interrupted' });
    expect(await claimNext(store)).toBeNull();
    expect(await store.runningTasks({ owner: 'me', now: NOW + DAY })).toEqual([]);
    await added(store, 'k3', { idempotency: { key: 'key', hash: 'h' } });
  });

  it('whoever watches hears of tasks that are added, told something and stopped, until it does not watch', async () => {
    const { store } = under;
    const other = await under.another();
    let heard = 0;
    const next = (count: number) => expect.poll(() => heard, { timeout: 5_000 }).toBeGreaterThan(count);
    const end = store.watch(() => heard++, 'task');
    await added(store, 'k1');
    await next(0);
    for (const change of [
      () => store.tellTask('k1', { mode: 'steer', text: 'x' }, NOW),
      () => other.tellTask('k1', 'stop', NOW),
    ]) {
      const before = heard;
      await change();
      await next(before);
    }
    end();
    const before = heard;
    await added(store, 'k2');
    await new Promise(setImmediate);
    await new Promise(setImmediate);
    expect(heard).toBe(before);
  });

  it('whoever watches and looks for a task is not woken by having found none', async () => {
    const { store } = under;
    let heard = 0;
    const end = store.watch(() => {
      heard++;
      void store.claimTask({ ...lease(), of: 'programs' });
    }, 'task');
    await added(store, 'k1');
    await expect.poll(() => heard, { timeout: 5_000 }).toBeGreaterThan(1);
    await new Promise((resolve) => setTimeout(resolve, 300));
    // Of the task that was added, of its claim, and of what other processes may have written.
    expect(heard).toBeLessThan(6);
    end();
  });

  it('runs every task once and ends it once, whatever two processes do in whatever order', async () => {
    const act = fc.record({
      who: fc.nat(1),
      what: fc.constantFrom('add', 'claim', 'finish', 'stop', 'tell', 'take', 'left'),
      which: fc.nat(4),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(act, { maxLength: 30 }), (acts) =>
        under.withFresh(async ({ store, another }) => {
          const stores = [store, await another()];
          const begun: string[] = [];
          const ended: string[] = [];
          let now = NOW;
          for (const { who, what, which } of acts) {
            const mine = stores[who] as Store;
            const owner = `p${who}`;
            const id = `k${which}`;
            now += MINUTE / 4;
            if (what === 'add') await mine.addTask(newTask(id, { now }), FREE);
            if (what === 'claim') begun.push(...[(await claimNext(mine, owner, now))?.id ?? []].flat());
            if (what === 'finish' && (await mine.finishTask(ending(id, { now }), owner)) === 'finished') {
              ended.push(id);
            }
            if (what === 'stop' && (await mine.tellTask(id, 'stop', now)) === 'done') ended.push(id);
            if (what === 'tell') await mine.tellTask(id, { mode: 'steer', text: 'x' }, now);
            if (what === 'take') await mine.takeTaskMessages({ id, owner }, ALL);
            if (what === 'left') {
              for (const { id: left, owner: dead } of await mine.runningTasks({ owner: 'new', now })) {
                const end = ending(left, { status: 'interrupted', now });
                if ((await mine.finishTask(end, dead)) === 'finished') ended.push(left);
              }
            }
          }
          expect(new Set(begun).size, 'none runs twice').toBe(begun.length);
          expect(new Set(ended).size, 'none ends twice').toBe(ended.length);
          for (const { id, status } of await store.tasks(99)) {
            const isOver = status !== 'pending' && status !== 'running';
            expect(isOver, id).toBe(ended.includes(id));
            if (status === 'running') expect(begun).toContain(id);
          }
        }),
      ),
      { numRuns: 15 },
    );
  });
}
