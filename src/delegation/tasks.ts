/** Tasks as programs use them: created, read, stopped, sent messages, and followed until they are over. */
import { createHash } from 'node:crypto';
import { type Clock, OVER } from '../core/clock.js';
import {
  type Agents,
  ENDED,
  type Task,
  type TaskBounds,
  type TaskEvent,
  type TaskProgress,
  type TaskStore,
  type Tasks,
  type TaskWish,
  UTILITY,
} from '../core/task.js';
import { canonical } from './viap/objects.js';

/** Maximum delay until changes by another process are seen. */
const LOOK_EVERY_MS = 5_000;
/** Size of the pieces in which a result is streamed. */
const PIECE_CHARS = 400;
/** A follower's unread events. They are shared, so a follower costs at most this many references. */
const MOST_UNREAD = 200;

/** `mostWaiting`: `limits.tasks_waiting`. */
export function createTasks(services: {
  store: TaskStore;
  agents: Agents;
  followers: Followers;
  mostWaiting: number;
  clock: Clock;
  newId(): string;
}): Tasks {
  const { store, agents, followers, mostWaiting, clock, newId } = services;
  const unbounded = Number.MAX_SAFE_INTEGER;
  const bounds: TaskBounds = { waiting: mostWaiting, perRoom: unbounded, delegated: unbounded };

  async function* follow(id: string, signal: AbortSignal): AsyncGenerator<TaskProgress> {
    // Before the first look, so that no end is missed in between.
    const follower = followers.join(id);
    try {
      while (!signal.aborted) {
        const task = await store.task(id);
        if (task === null) return;
        for (const event of follower.read()) yield { kind: 'event', event };
        if (ENDED.includes(task.status)) {
          yield* endOf(task);
          return;
        }
        const over = new AbortController();
        const any = AbortSignal.any([signal, over.signal]);
        await Promise.race([follower.wait(any), clock.sleep(LOOK_EVERY_MS, any)]);
        over.abort(OVER);
      }
    } finally {
      follower.leave();
    }
  }

  return {
    async submit(wish) {
      const found = await agents.find(wish.agent ?? UTILITY);
      if (!found.ok) return { kind: 'unknown agent', reason: found.reason };
      const id = newId();
      const key = wish.idempotencyKey;
      const task = {
        id,
        agent: found.agent.id,
        goal: wish.goal,
        parent: null,
        request: { ...wish.request, viap: null },
        idempotency: key === null ? null : { key: `program ${key}`, hash: hashOf(wish) },
        now: clock.now(),
      };
      const added = await store.addTask(task, bounds);
      if (added.kind === 'added') return { kind: 'accepted', task: { id, status: 'pending' }, isNew: true };
      if (added.kind === 'there') return { kind: 'accepted', task: added.task, isNew: false };
      return { kind: added.kind };
    },

    async find(id) {
      const task = await store.task(id);
      return task === null ? null : { task, events: await store.taskEvents(id) };
    },

    list: (most) => store.tasks({ most }),
    async stop(id) {
      const stopped = await store.stopTask(id, clock.now());
      if (stopped === 'stopped') followers.ended(id);
      return stopped;
    },
    tell: (id, text, mode) => store.addTaskMessage({ id, text, mode, now: clock.now() }),
    follow,
  };
}

/** Only the end shows which answer is the last; nothing of it is streamed before. */
function* endOf(task: Task): Generator<TaskProgress> {
  const characters = [...(task.status === 'completed' ? (task.result?.text ?? '') : '')];
  for (let from = 0; from < characters.length; from += PIECE_CHARS) {
    yield { kind: 'text-delta', text: characters.slice(from, from + PIECE_CHARS).join('') };
  }
  yield { kind: 'end', task };
}

/** Equal for requests that differ only in the order of their fields. */
function hashOf({ goal, agent, request }: TaskWish): string {
  return createHash('sha256').update(canonical({ goal, agent, request })).digest('hex');
}

interface Unread {
  events: TaskEvent[];
  /** It may be over; nobody has checked yet. */
  mayBeOver: boolean;
  wake(): void;
}

export type Followers = ReturnType<typeof createFollowers>;

/** The followers of tasks in this process. A slow one blocks nobody: it loses its oldest events. */
export function createFollowers() {
  const followed = new Map<string, Set<Unread>>();
  const of = (taskId: string) => followed.get(taskId) ?? [];

  return {
    saw(taskId: string, events: readonly TaskEvent[]): void {
      for (const follower of of(taskId)) {
        follower.events = [...follower.events, ...events].slice(-MOST_UNREAD);
        follower.wake();
      }
    },

    /** The task may be over: its followers check. */
    ended(taskId: string): void {
      for (const follower of of(taskId)) {
        follower.mayBeOver = true;
        follower.wake();
      }
    },

    join(taskId: string) {
      const all = followed.get(taskId) ?? new Set();
      followed.set(taskId, all);
      const unread: Unread = { events: [], mayBeOver: false, wake() {} };
      all.add(unread);
      return {
        /** Events since the last call, in order. */
        read(): TaskEvent[] {
          const { events } = unread;
          unread.events = [];
          unread.mayBeOver = false;
          return events;
        },
        /** Resolves once there is something to read, something happens, or the signal aborts. */
        wait: (signal: AbortSignal): Promise<void> =>
          new Promise((resolve) => {
            const done = () => {
              unread.wake = () => {};
              signal.removeEventListener('abort', done);
              resolve();
            };
            if (signal.aborted || unread.mayBeOver || unread.events.length > 0) return resolve();
            unread.wake = done;
            signal.addEventListener('abort', done, { once: true });
          }),
        leave(): void {
          all.delete(unread);
          if (all.size === 0 && followed.get(taskId) === all) followed.delete(taskId);
        },
      };
    },
  };
}
