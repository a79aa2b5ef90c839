import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Fault } from '../../src/core/errors.js';
import type { Work } from '../../src/core/task.js';
import { createRunner } from '../../src/delegation/runner.js';
import { journalOf } from '../contract/store/words.js';
import { AGENT, all, BOUNDS, delegated, OWNER, reportOf, type Stage, stage, until } from './support.js';

const MINUTE = 60_000;

describe('a runner', () => {
  let here: Stage;
  beforeEach(async () => {
    here = await stage();
  });
  afterEach(() => here.remove());

  it('runs what was given before it began, and what is given afterwards', async () => {
    const first = await here.submit('first');
    here.runner.start();
    (await here.requests(1))[0]?.answers('One.');
    expect(await here.end(first)).toMatchObject({
      status: 'completed',
      result: { text: 'One.', summary: 'One.' },
    });
    const second = await here.submit('second');
    (await here.requests(2))[1]?.answers('Two. More.');
    expect(await here.end(second)).toMatchObject({ result: { text: 'Two. More.', summary: 'Two.' } });
  });

  it('asks with the agent’s prompt and the goal, and logs what was said as a session', async () => {
    here.runner.start();
    const id = await here.submit('Count the files.');
    const [asked] = await here.requests(1);
    const { messages, round } = asked?.ask ?? { messages: [] };
    expect(round).toBe(0);
    expect(messages[0]).toMatchObject({
      role: 'system',
      content: expect.stringContaining('You are useful.'),
    });
    expect(messages.at(-1)).toEqual({ role: 'user', content: 'Count the files.' });
    asked?.answers('Three.');
    await here.end(id);
    expect(here.session(id).map(({ role, content }) => [role, content])).toEqual([
      ['user', 'Count the files.'],
      ['assistant', 'Three.'],
    ]);
  });

  it('runs at most eight programs’ tasks at once, and delegated ones beside them at once', async () => {
    here.runner.start();
    for (let n = 0; n < 12; n++) await here.submit(`number ${n}`);
    await here.requests(8);
    await here.store.addTask(delegated('mine'), BOUNDS);
    const asked = await here.requests(9);
    expect(asked.map(({ ask }) => ask.task.id)).toContain('mine');
    await here.clock.advance(1_000);
    expect(here.asked).toHaveLength(9);
    here.asked[0]?.answers('Done.');
    await here.requests(10);
  });

  it('leaves tasks of other processes’ channels alone', async () => {
    const foreign = { ...delegated('other').parent, chatId: 'terminal_local', room: 'terminal_local' };
    await here.store.addTask(delegated('other', { parent: foreign as never }), BOUNDS);
    here.runner.start();
    const id = await here.submit('mine');
    (await here.requests(1))[0]?.answers('Yes.');
    await here.end(id);
    expect(await here.store.task('other')).toMatchObject({ status: 'pending' });
  });

  it('ends a task whose agent is gone with a sentence that names those there are', async () => {
    await here.store.addTask(delegated('lost', { agent: 'nobody' }), BOUNDS);
    here.runner.start();
    expect(await here.end('lost')).toMatchObject({
      status: 'error',
      error: 'There is no agent nobody; there are: utility.',
    });
    expect(here.fired).toEqual(['test_1']);
  });

  it('says what failed in a plain sentence', async () => {
    here.runner.start();
    const id = await here.submit('fail');
    (await here.requests(1))[0]?.fails(new Fault('model_unreachable', 'connect ECONNREFUSED 10.0.0.1'));
    const { status, error, result } = await here.end(id);
    expect({ status, result }).toEqual({ status: 'error', result: null });
    expect(error).toContain('could not reach');
    expect(error).not.toContain('10.0.0.1');
  });

  it('ends a task whose work throws', async () => {
    await here.remove();
    here = await stage({
      work: {
        do: () => Promise.reject(new Error('a fault of our own')),
      } as Work,
    });
    here.runner.start();
    expect(await here.end(await here.submit('x'))).toMatchObject({ status: 'error' });
  });

  describe('hears', () => {
    it('what steers first, which ends what it does; then what follows, one by one; then what was collected, together', async () => {
      here.runner.start();
      const id = await here.submit('begin');
      await here.requests(1);
      await here.tasks.tell(id, 'late 1', 'collect');
      await here.tasks.tell(id, 'next 1', 'followup');
      await here.tasks.tell(id, 'next 2', 'followup');
      await here.tasks.tell(id, 'late 2', 'collect');
      expect(here.asked).toHaveLength(1);
      await here.tasks.tell(id, 'now', 'steer');
      await here.requests(2);
      expect(here.asked[0]?.signal.aborted).toBe(true);
      for (let n = 1; n < 5; n++) {
        const asked = (await here.requests(n + 1))[n];
        asked?.answers(`answer ${n}`);
      }
      const { result } = await here.end(id);
      expect(result?.text).toBe('answer 4');
      const last = here.asked.map(({ ask }) => ask.messages.at(-1));
      expect(last.map((each) => each?.role === 'user' && each.content)).toEqual([
        ...['begin', 'now', 'next 1', 'next 2', 'late 1\nlate 2'],
      ]);
      expect(here.asked.map(({ ask }) => ask.round)).toEqual([0, 1, 2, 3, 4]);
      // On the same messages.
      expect(here.asked[4]?.ask.messages).toContainEqual({
        role: 'assistant',
        content: 'answer 1',
        calls: [],
      });
    });

    it('what steers a task that waits with its first request, and the rest after it', async () => {
      const id = await here.submit('begin');
      await here.tasks.tell(id, 'next', 'followup');
      await here.tasks.tell(id, 'now', 'steer');
      here.runner.start();
      for (let n = 0; n < 2; n++) (await here.requests(n + 1))[n]?.answers(`answer ${n}`);
      expect((await here.end(id)).result?.text).toBe('answer 1');
      expect(here.asked.map(({ ask }) => ask.messages.at(-1)?.content)).toEqual(['now', 'next']);
    });

    it('nothing after the end', async () => {
      here.runner.start();
      const id = await here.submit('x');
      (await here.requests(1))[0]?.answers('Done.');
      await here.end(id);
      expect(await here.tasks.tell(id, 'more', 'followup')).toBe('ended');
      expect(await here.tasks.tell('none', 'more', 'steer')).toBe('unknown');
    });
  });

  describe('stops', () => {
    it('a task at once, and tells nothing of it', async () => {
      here.runner.start();
      const id = await here.submit('x');
      await here.requests(1);
      expect(await here.tasks.stop(id)).toBe('done');
      await until(() => here.asked[0]?.signal.aborted === true);
      expect(await here.store.task(id)).toMatchObject({ status: 'stopped', result: null });
      expect(await here.tasks.stop(id)).toBe('ended');
      // The slot is free again.
      await here.submit('y');
      await here.requests(2);
    });

    it('one that ignores it, and stores nothing more of it', async () => {
      await here.remove();
      const asked: Parameters<Work['do']>[0][] = [];
      here = await stage({ work: { do: (ask) => new Promise(() => asked.push(ask)) } });
      here.runner.start();
      const id = await here.submit('x');
      await until(() => asked.length === 1);
      await here.tasks.stop(id);
      expect(await asked[0]?.note({ events: [] })).toBe(false);
    });
  });

  describe('ends what lasts too long', () => {
    it('a program’s task after half an hour, with a sentence', async () => {
      here.runner.start();
      const id = await here.submit('hang');
      await here.requests(1);
      await here.clock.advance(30 * MINUTE - 1);
      expect(await here.store.task(id)).toMatchObject({ status: 'running' });
      await here.clock.advance(10_000);
      expect(await here.end(id)).toMatchObject({
        status: 'error',
        error: expect.stringContaining('30 minutes'),
      });
    });

    it('a delegated one after its own time, with a report of the gateway', async () => {
      await here.store.addTask(delegated('slow', {}, { time_budget_min: 0.5 }), BOUNDS);
      here.runner.start();
      await here.requests(1);
      await here.clock.advance(40_000);
      const { status, result } = await here.end('slow');
      expect(status).toBe('error');
      expect(JSON.parse(result?.text ?? '')).toMatchObject({
        ...{ type: 'VIAP_V3_REPORT', task_id: 'viap:slow', success: false },
        errors: [{ where: 'timeout' }],
      });
      expect(here.fired).toEqual(['test_1']);
    });

    it('never later than its agent’s own limit', async () => {
      await here.remove();
      here = await stage({ agents: [{ ...AGENT, timeoutMinutes: 1 }] });
      await here.store.addTask(delegated('slow', {}, { time_budget_min: 500 }), BOUNDS);
      here.runner.start();
      await here.requests(1);
      await here.clock.advance(MINUTE + 10_000);
      expect(await here.end('slow')).toMatchObject({ status: 'error' });
    });

    it('but counts no time in which it waits for a person', async () => {
      here.runner.start();
      const id = await here.submit('ask');
      const [asked] = await here.requests(1);
      await here.clock.advance(20 * MINUTE);
      asked?.ask.waits(true);
      await here.clock.advance(300 * MINUTE);
      asked?.ask.waits(false);
      await here.clock.advance(9 * MINUTE);
      expect(await here.store.task(id)).toMatchObject({ status: 'running' });
      await here.clock.advance(2 * MINUTE);
      expect(await here.end(id)).toMatchObject({ status: 'error' });
    });

    it('also where its work ignores the signal', async () => {
      await here.remove();
      let begun = 0;
      here = await stage({ work: { do: () => new Promise(() => begun++) } });
      here.runner.start();
      const id = await here.submit('hang');
      await until(() => begun === 1);
      await here.clock.advance(31 * MINUTE);
      expect(await here.end(id)).toMatchObject({ status: 'error' });
    });
  });

  describe('ends a delegated task', () => {
    it('with its report, told once to its room', async () => {
      await here.store.addTask(delegated('good'), BOUNDS);
      here.runner.start();
      (await here.requests(1))[0]?.answers(`Here:\n\`\`\`json\n${reportOf('good')}\n\`\`\``);
      expect(await here.end('good')).toMatchObject({
        status: 'completed',
        result: { summary: 'It is done.' },
      });
      expect(here.fired).toEqual(['test_1']);
    });

    it('after one request for a report that can be used', async () => {
      await here.store.addTask(delegated('repair'), BOUNDS);
      here.runner.start();
      (await here.requests(1))[0]?.answers('done!');
      const asked = (await here.requests(2))[1];
      expect(JSON.stringify(asked?.ask.messages.at(-1))).toContain('viap:repair');
      asked?.answers(reportOf('repair'));
      expect(await here.end('repair')).toMatchObject({ status: 'completed' });
    });

    it('with a report of failure when there is none then, either', async () => {
      await here.store.addTask(delegated('bad'), BOUNDS);
      here.runner.start();
      (await here.requests(1))[0]?.answers(reportOf('another'));
      (await here.requests(2))[1]?.answers('done!');
      const { status, result } = await here.end('bad');
      expect(status).toBe('error');
      expect(JSON.parse(result?.text ?? '')).toMatchObject({
        ...{ success: false, errors: [{ where: 'report_parse' }], logs: { stdout_tail: 'done!' } },
      });
      expect(here.asked).toHaveLength(2);
    });

    it('in the order in which they are done, not that in which they were given', async () => {
      for (const id of ['one', 'two']) await here.store.addTask(delegated(id), BOUNDS);
      here.runner.start();
      const asked = await here.requests(2);
      const of = (id: string) => asked.find(({ ask }) => ask.task.id === id);
      of('two')?.answers(reportOf('two', { summary: 'Two.' }));
      await here.end('two');
      of('one')?.answers(reportOf('one', { summary: 'One.' }));
      await here.end('one');
      const told = (await journalOf(here.store)).flatMap(({ entry }) =>
        entry.type === 'GUPPIEvent' && entry.event_type === 'TaskCompleted'
          ? [JSON.stringify(entry.content)]
          : [],
      );
      expect(told.map((each) => /One\.|Two\./.exec(each)?.[0])).toEqual(['Two.', 'One.']);
    });
  });

  describe('after a crash', () => {
    it('ends what ran as interrupted, told once, and runs nothing again', async () => {
      await here.store.addTask(delegated('mine'), BOUNDS);
      const id = await here.submit('theirs');
      const lease = { owner: OWNER, leaseMs: MINUTE, now: 1 };
      await here.store.claimTask({ ...lease, of: 'programs' });
      await here.store.claimTask({ ...lease, of: { channels: ['test'] } });
      here.runner.start();
      expect(await here.end(id)).toMatchObject({
        status: 'interrupted',
        error: expect.any(String),
        result: null,
      });
      expect(await here.end('mine')).toMatchObject({ status: 'interrupted' });
      expect(here.fired).toEqual(['test_1']);
      const next = await here.submit('next');
      (await here.requests(1))[0]?.answers('Yes.');
      await here.end(next);
      expect(here.asked).toHaveLength(1);
      expect(here.fired).toEqual(['test_1']);
    });
  });

  it('leaves the tasks of another gateway alone, whose clock is behind by a minute', async () => {
    const id = await here.submit('theirs');
    const now = here.clock.now() - MINUTE;
    await here.store.claimTask({ owner: 'another', leaseMs: MINUTE / 2, now, of: 'programs' });
    const runner = createRunner({ ...here.parts, storeNow: () => here.clock.now() - MINUTE });
    runner.start();
    await here.clock.advance(MINUTE / 4);
    expect(await here.store.task(id)).toMatchObject({ status: 'running' });
    await here.clock.advance(MINUTE / 2);
    expect(await here.end(id)).toMatchObject({ status: 'interrupted' });
    await runner.stop(0);
  });

  it('stops with its gateway: what runs is given its time, then ends as interrupted, and what waits stays', async () => {
    here.runner.start();
    for (let n = 0; n < 9; n++) await here.submit(`number ${n}`);
    await here.store.addTask(delegated('mine'), BOUNDS);
    await here.requests(9);
    const stopping = here.runner.stop(5_000);
    here.asked[0]?.answers('Just in time.');
    const first = here.asked[0]?.ask.task.id ?? '';
    expect(await here.end(first)).toMatchObject({ status: 'completed' });
    await here.clock.advance(10_000);
    await stopping;
    const statuses = (await here.tasks.list(20)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 'interrupted')).toHaveLength(8);
    expect(statuses.filter((status) => status === 'pending')).toHaveLength(1);
    expect(here.fired).toEqual(['test_1']);
  });

  it('that is stopped while it begins looks for nothing any more', async () => {
    let renewed = () => {};
    const renewing = new Promise<void>((resolve) => {
      renewed = resolve;
    });
    const looks: unknown[] = [];
    const runningTasks: typeof here.store.runningTasks = (ask) => {
      looks.push(ask);
      return here.store.runningTasks(ask);
    };
    const store = { ...here.store, renewTasks: () => renewing, runningTasks };
    const runner = createRunner({ ...here.parts, store });
    runner.start();
    await runner.stop(0);
    renewed();
    await renewing;
    await new Promise((resolve) => setImmediate(resolve));
    expect(looks).toEqual([]);
  });
});

describe('a follower', () => {
  let here: Stage;
  beforeEach(async () => {
    here = await stage();
    here.runner.start();
  });
  afterEach(() => here.remove());

  it('sees what happens, then the text in pieces, then the end', async () => {
    const id = await here.submit('x');
    const seen = all(here.tasks.follow(id, new AbortController().signal));
    const [asked] = await here.requests(1);
    const call = { at: 1, kind: 'tool-call', callId: 'c', tool: 'glob', arguments: '{}' } as const;
    expect(await asked?.ask.note({ events: [call] })).toBe(true);
    asked?.answers('not the last one');
    await here.tasks.tell(id, 'more', 'followup');
    const text = 'ä🙂'.repeat(700);
    (await here.requests(2))[1]?.answers(text);
    const progress = await seen;
    expect(progress).toContainEqual({ kind: 'event', event: call });
    const words = progress.flatMap((each) => (each.kind === 'text-delta' ? [each.text] : []));
    expect(words.length).toBeGreaterThan(1);
    expect(words.join('')).toBe(text);
    expect(progress.at(-1)).toMatchObject({ kind: 'end', task: { status: 'completed' } });
  });

  it('gets the end, also where it comes late', async () => {
    const id = await here.submit('x');
    (await here.requests(1))[0]?.answers('Done.');
    await here.end(id);
    expect(await all(here.tasks.follow(id, new AbortController().signal))).toMatchObject([
      { kind: 'text-delta', text: 'Done.' },
      { kind: 'end', task: { status: 'completed' } },
    ]);
  });

  it('gets the end of one that was stopped, and nothing of one that does not exist', async () => {
    const id = await here.submit('x');
    const seen = all(here.tasks.follow(id, new AbortController().signal));
    await here.requests(1);
    await here.tasks.stop(id);
    expect((await seen).at(-1)).toMatchObject({ kind: 'end', task: { status: 'stopped' } });
    expect(await all(here.tasks.follow('none', new AbortController().signal))).toEqual([]);
  });

  it('that never reads slows nothing down, and is owed no more than so much', async () => {
    const id = await here.submit('x');
    const follower = here.tasks.follow(id, new AbortController().signal)[Symbol.asyncIterator]();
    await follower.next();
    const [asked] = await here.requests(1);
    for (let n = 0; n < 1_000; n++) {
      await asked?.ask.note({
        events: [{ at: n, kind: 'tool-call', callId: `c${n}`, tool: 'glob', arguments: '{}' }],
      });
    }
    asked?.answers('Done.');
    await here.end(id);
    const rest = await all({ [Symbol.asyncIterator]: () => follower });
    expect(rest.length).toBeLessThan(300);
    expect(rest.at(-1)).toMatchObject({ kind: 'end' });
  });

  it('ends when nobody wants it any more', async () => {
    const id = await here.submit('x');
    const over = new AbortController();
    const seen = all(here.tasks.follow(id, over.signal));
    await here.requests(1);
    over.abort();
    expect((await seen).every(({ kind }) => kind === 'event')).toBe(true);
  });
});
