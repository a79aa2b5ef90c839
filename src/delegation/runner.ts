/** Runs pending tasks from the store; at start-up ends a dead process's. Keeps no state of its own. */
import { OVER, orAfter } from '../core/clock.js';
import { backoff } from '../core/retry.js';
import type { Task, TaskOrigin } from '../core/task.js';
import { endTask, type TaskServices } from './end.js';
import { Running, runTask } from './run-task.js';
import { viapOf } from './viap/task.js';

export type Runner = ReturnType<typeof createRunner>;

/** Enough to keep a model server busy; personas' tasks begin at once, and are few (`PER_ROOM`). */
const MOST_PROGRAMS = 8;
const LEASE_MS = 60_000;
/** For storing aborted tasks, in addition to the time they take to settle. */
const REST_MS = 4_000;
const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 60_000;

export function createRunner(services: TaskServices) {
  const { store, owner, leaseMs = LEASE_MS, channels, takesPrograms, clock, log, followers } = services;
  const { storeNow = clock.now } = services;
  const running = new Map<string, { run: Running; done: Promise<void> }>();
  const stopped = new AbortController();
  let looking: Promise<void> | null = null;
  let isAgain = false;
  let unwatch = () => {};
  let stopRenewing = () => {};

  /** One look at a time; an event during a look causes one more. None after the end. */
  function look(): void {
    if (stopped.signal.aborted) return;
    if (looking !== null) {
      isAgain = true;
      return;
    }
    looking = lookOnce().finally(() => {
      looking = null;
      if (isAgain) look();
    });
  }

  async function lookOnce(): Promise<void> {
    isAgain = false;
    try {
      const there = await store.runningTasks({ owner, now: storeNow() });
      notice(there);
      for (const left of there) if (!running.has(left.id)) await endLeft(services, left);
      if (takesPrograms) await claim('programs', () => programs() < MOST_PROGRAMS);
      await claim({ channels }, () => true);
    } catch (error) {
      log.warn({ err: error }, 'could not look for tasks; retrying');
    }
  }

  const programs = () => [...running.values()].filter(({ run }) => run.task.parent === null).length;

  /** Some running tasks may be over, or have new messages. */
  function notice(there: Awaited<ReturnType<typeof store.runningTasks>>): void {
    for (const { run } of running.values()) {
      const task = there.find(({ id }) => id === run.task.id);
      if (task?.isSteered) run.steer();
      if (task !== undefined) continue;
      run.end('over');
      followers.saw(run.task.id);
    }
  }

  async function claim(of: TaskOrigin, isRoom: () => boolean): Promise<void> {
    while (isRoom() && !stopped.signal.aborted) {
      const task = await store.claimTask({ owner, leaseMs, now: storeNow(), of });
      if (task === null) return;
      begin(task);
    }
  }

  function begin(task: Task): void {
    const run = new Running(task);
    followers.saw(task.id, [{ at: task.startedAt ?? clock.now(), kind: 'status', status: 'running' }]);
    const done = finish(services, run, stopped.signal).then(() => {
      running.delete(task.id);
      look();
    });
    running.set(task.id, { run, done });
  }

  async function renew(): Promise<void> {
    await store
      .renewTasks({ owner, leaseMs, now: storeNow() })
      .catch((error) => log.warn({ err: error }, 'could not renew the leases of tasks; retrying'));
    look();
    if (!stopped.signal.aborted) stopRenewing = clock.after(leaseMs / 3, () => void renew());
  }

  return {
    /** Takes up pending tasks; later ones are noticed automatically. */
    start(): void {
      unwatch = store.watch(look, 'task');
      void renew();
    },

    /** Takes up no more tasks. Running ones get this time, then end as interrupted. */
    async stop(withinMs: number): Promise<void> {
      stopped.abort(OVER);
      unwatch();
      stopRenewing();
      // It may just have claimed one.
      await looking;
      const over = Promise.all([...running.values()].map(({ done }) => done));
      await orAfter(over, withinMs, clock);
      for (const { run } of running.values()) run.end('shutdown');
      await orAfter(over, REST_MS, clock);
    },
  };
}

/** The progress of a dead process's task is unknown: this is reported once, and the task not repeated. */
async function endLeft(services: TaskServices, { id, owner }: { id: string; owner: string }): Promise<void> {
  const task = await services.store.task(id);
  if (task === null) return;
  const outcome = { kind: 'interrupted' } as const;
  const ended = await endTask(services, { task, viap: viapOf(task), outcome, tainted: true }, owner);
  if (ended === 'finished') services.metrics.count('takeovers_total', { kind: 'task' });
}

/** Never rejects. On failure, the task is marked interrupted as soon as the store accepts writes. */
async function finish(services: TaskServices, run: Running, stopped: AbortSignal): Promise<void> {
  const { clock, log } = services;
  try {
    return await runTask(services, run);
  } catch (error) {
    log.error({ err: error, task: run.task.id }, 'a task failed unexpectedly; ending it as interrupted');
  }
  for (let attempt = 1; run.why() !== 'over'; attempt++) {
    try {
      const outcome = { kind: 'interrupted' } as const;
      await endTask(services, { task: run.task, viap: null, outcome, tainted: true });
      return;
    } catch (error) {
      log.warn({ err: error, task: run.task.id }, 'could not store the end of a task; retrying');
    }
    // The next start ends it.
    if (stopped.aborted) return;
    await clock.sleep(backoff(attempt, FIRST_RETRY_MS, LONGEST_RETRY_MS), stopped);
  }
}
