/** Tasks as programs see them: given, looked at, stopped, told something, and followed until they are over. */
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

interface TasksParts {
  store: Pick<
    TaskStore,
    'addTask' | 'task' | 'tasks' | 'taskEvents' | 'addTaskMessage' | 'stopTask' | 'watchTasks'
  >;
  agents: Pick<Agents, 'find'>;
  followers: Followers;
  /** `limits.tasks_waiting` */
  mostWaiting: number;
  clock: Clock;
  newId(): string;
}

/** What another process does to a task is seen this late. */
const LOOK_EVERY_MS = 5_000;
/** Of the pieces in which a result is followed. */
const PIECE_CHARS = 400;

export function createTasks(parts: TasksParts): Tasks {
  const { store, agents, followers, mostWaiting, clock, newId } = parts;

  async function* follow(id: string, signal: AbortSignal): AsyncGenerator<TaskProgress> {
    // Before the first look, so that no end is missed between the two.
    const follower = followers.join(id);
    try {
      while (!signal.aborted) {
        const task = await store.task(id);
        if (task === null) return;
        for (const event of follower.read()) yield { kind: 'event', event };
        if (isOver(task)) {
          yield* endOf(task);
          return;
        }
        await somethingNew(clock, follower, signal);
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
      const added = await store.addTask(
        {
          ...{ id, agent: found.agent.id, goal: wish.goal, parent: null, now: clock.now() },
          request: { ...wish.request, viap: null },
          idempotency: key === null ? null : { key: `program ${key}`, hash: hashOf(wish) },
        },
        boundsOf(mostWaiting),
      );
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

function boundsOf(waiting: number): TaskBounds {
  return { waiting, perRoom: Number.MAX_SAFE_INTEGER, delegated: Number.MAX_SAFE_INTEGER };
}

function isOver({ status }: Task): boolean {
  return ENDED.includes(status);
}

/** Which answer is the last one is certain only at the end; until then none of its words is shown. */
function* endOf(task: Task): Generator<TaskProgress> {
  const characters = [...(task.status === 'completed' ? (task.result?.text ?? '') : '')];
  for (let from = 0; from < characters.length; from += PIECE_CHARS) {
    yield { kind: 'text-delta', text: characters.slice(from, from + PIECE_CHARS).join('') };
  }
  yield { kind: 'end', task };
}

async function somethingNew(clock: Clock, follower: Follower, signal: AbortSignal): Promise<void> {
  const over = new AbortController();
  const any = AbortSignal.any([signal, over.signal]);
  await Promise.race([follower.wait(any), clock.sleep(LOOK_EVERY_MS, any)]);
  over.abort(OVER);
}

/** The same for two wishes that say the same, in whatever order their fields stand. */
function hashOf({ goal, agent, request }: TaskWish): string {
  return createHash('sha256').update(canonical({ goal, agent, request })).digest('hex');
}

// Who follows tasks in this process, and what they have not read yet. Nobody waits for a follower: of what it does not
// read, the oldest is forgotten. The end is not kept here: it stands in the store.

export interface Followers {
  /** Something happened to a task. */
  saw(taskId: string, events: readonly TaskEvent[]): void;
  /** The task may be over: whoever follows it looks. */
  ended(taskId: string): void;
  join(taskId: string): Follower;
}

interface Follower {
  /** What happened since it was asked last, in order. */
  read(): TaskEvent[];
  /** Resolves at once where something can be read, else as soon as something happens, or the signal aborts. */
  wait(signal: AbortSignal): Promise<void>;
  leave(): void;
}

/** Events are shared by all who follow a task, so a follower costs no more than this many references. */
const MOST_UNREAD = 200;

interface Unread {
  events: TaskEvent[];
  /** It may be over, which nobody has looked at yet. */
  mayBeOver: boolean;
  wake(): void;
}

export function createFollowers(): Followers {
  const followed = new Map<string, Set<Unread>>();
  const of = (taskId: string) => followed.get(taskId) ?? [];

  return {
    saw(taskId, events) {
      for (const follower of of(taskId)) {
        follower.events.push(...events);
        if (follower.events.length > MOST_UNREAD)
          follower.events.splice(0, follower.events.length - MOST_UNREAD);
        follower.wake();
      }
    },

    ended(taskId) {
      for (const follower of of(taskId)) {
        follower.mayBeOver = true;
        follower.wake();
      }
    },

    join(taskId) {
      const all = followed.get(taskId) ?? new Set();
      followed.set(taskId, all);
      const unread: Unread = { events: [], mayBeOver: false, wake() {} };
      all.add(unread);
      return {
        read() {
          const { events } = unread;
          unread.events = [];
          unread.mayBeOver = false;
          return events;
        },
        wait: (signal) =>
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
        leave() {
          all.delete(unread);
          if (all.size === 0 && followed.get(taskId) === all) followed.delete(taskId);
        },
      };
    },
  };
}
