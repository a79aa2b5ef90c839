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
  return {
    async submit({ goal, agent: named, request, idempotencyKey: key }) {
      const found = await agents.find(named ?? UTILITY);
      if (!found.ok) return { kind: 'unknown agent', reason: found.reason };
      const id = newId();
      // Equal for requests that differ only in the order of their fields.
      const hash = createHash('sha256')
        .update(canonical({ goal, agent: named, request }))
        .digest('hex');
      const task = {
        id,
        agent: found.agent.id,
        goal,
        parent: null,
        request: { ...request, viap: null },
        idempotency: key === null ? null : { key: `program ${key}`, hash },
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
      if (stopped === 'stopped') followers.saw(id);
      return stopped;
    },
    tell: (id, text, mode) => store.addTaskMessage({ id, text, mode, now: clock.now() }),

    async *follow(id, signal) {
      const follower = followers.join(id);
      try {
        while (!signal.aborted) {
          // Before the look, so that no end is missed in between.
          const news = follower.news();
          const task = await store.task(id);
          if (task === null) return;
          for (const event of follower.read()) yield { kind: 'event', event };
          if (ENDED.includes(task.status)) return yield* endOf(task);
          await clock.sleep(LOOK_EVERY_MS, AbortSignal.any([signal, news]));
        }
      } finally {
        followers.leave(id, follower);
      }
    },
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

/** A slow follower blocks nobody: it loses its oldest events. */
class Follower {
  #events: TaskEvent[] = [];
  #news = new AbortController();

  tell(events: readonly TaskEvent[]): void {
    this.#events = [...this.#events, ...events].slice(-MOST_UNREAD);
    this.#news.abort(OVER);
  }

  /** Events since the last call, in order. */
  read(): TaskEvent[] {
    return this.#events.splice(0);
  }

  /** Aborts when there is something to read, or the task may be over. */
  news(): AbortSignal {
    this.#news = new AbortController();
    return this.#news.signal;
  }
}

export type Followers = ReturnType<typeof createFollowers>;

/** The followers of tasks in this process. */
export function createFollowers() {
  const followed = new Map<string, Set<Follower>>();
  return {
    /** Without events: the task may be over, so its followers check. */
    saw(taskId: string, events: readonly TaskEvent[] = []): void {
      for (const follower of followed.get(taskId) ?? []) follower.tell(events);
    },
    join(taskId: string): Follower {
      const follower = new Follower();
      followed.set(taskId, (followed.get(taskId) ?? new Set()).add(follower));
      return follower;
    },
    leave(taskId: string, follower: Follower): void {
      const all = followed.get(taskId);
      all?.delete(follower);
      if (all?.size === 0) followed.delete(taskId);
    },
  };
}
