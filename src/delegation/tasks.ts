/** Takes tasks of personas (`Delegation`), and of programs, which also read, stop and follow them (`Tasks`). */
import { createHash } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { type Clock, OVER } from '../core/clock.js';
import type { WatchStore } from '../core/store.js';
import {
  type Agents,
  type DelegatingCall,
  type Delegation,
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
import { readViapTask } from './viap/task.js';

/** Maximum delay until changes by another process are seen. */
const LOOK_EVERY_MS = 5_000;
/** Size of the pieces in which a result is streamed. */
const PIECE_CHARS = 400;
/** A follower's unread events. They are shared, so a follower costs at most this many references. */
const MOST_UNREAD = 200;

/** `mostWaiting`: `limits.tasks_waiting`. */
export function createTasks(services: {
  store: TaskStore & WatchStore;
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
      const hash = hashOf(canonical({ goal, agent: named, request }));
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
      if (added.kind === 'added') return { kind: 'accepted', task: { id, status: 'pending' } };
      if (added.kind === 'there') return { kind: 'accepted', task: added.task };
      return { kind: added.kind };
    },

    async find(id) {
      const task = await store.task(id);
      return task === null ? null : { task, events: await store.taskEvents(id) };
    },

    list: (most) => store.tasks(most),
    async stop(id) {
      const stopped = await store.tellTask(id, 'stop', clock.now());
      if (stopped === 'done') followers.saw(id);
      return stopped;
    },
    tell: (id, text, mode) => store.tellTask(id, { mode, text }, clock.now()),

    async *follow(id, signal) {
      // A slow follower blocks nobody: it loses its oldest events.
      const unread: TaskEvent[] = [];
      let news = new AbortController();
      const leave = followers.join(id, (events) => {
        unread.push(...events);
        unread.splice(0, unread.length - MOST_UNREAD);
        news.abort(OVER);
      });
      try {
        while (!signal.aborted) {
          // Before the look, so that no end is missed in between.
          news = new AbortController();
          const task = await store.task(id);
          if (task === null) return;
          for (const event of unread.splice(0)) yield { kind: 'event', event };
          if (ENDED.includes(task.status)) return yield* endOf(task);
          await clock.sleep(LOOK_EVERY_MS, AbortSignal.any([signal, news.signal]));
        }
      } finally {
        leave();
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

export type Followers = ReturnType<typeof createFollowers>;

/** The followers of tasks in this process. */
export function createFollowers() {
  const followed = new EventEmitter().setMaxListeners(0);
  return {
    /** Without events: the task may be over, so its followers check. */
    saw: (taskId: string, events: readonly TaskEvent[] = []) => void followed.emit(`task ${taskId}`, events),
    /** Returns a function that leaves it. */
    join(taskId: string, tell: (events: readonly TaskEvent[]) => void): () => void {
      followed.on(`task ${taskId}`, tell);
      return () => void followed.off(`task ${taskId}`, tell);
    },
  };
}

const PER_ROOM = 5;
const IN_ALL = 8;
/** Delegated tasks do not wait in the programs' queue. */
const BOUNDS: TaskBounds = { waiting: Number.MAX_SAFE_INTEGER, perRoom: PER_ROOM, delegated: IN_ALL };
const FULL: Record<keyof TaskBounds, string> = {
  perRoom: `Not begun: ${PER_ROOM} tasks of this conversation are being worked on already. Give it again when one of them is done.`,
  delegated: `Not begun: ${IN_ALL} tasks are being worked on already, as many as there may be at once. Give it again later.`,
  waiting: 'Not begun: too many tasks are waiting. Give it again later.',
};

export function createDelegation(services: {
  store: TaskStore & WatchStore;
  agents: Agents;
  newId: () => string;
  clock: { now(): number };
}): Delegation {
  const { store, agents, newId, clock } = services;
  return {
    async spawn({ agentId, task: given, eventId, ...parent }) {
      const read = readViapTask(given);
      if (!read.ok) return read;
      const found = await agents.find(agentId);
      if (!found.ok) return found;
      const { goal, raw } = read.task;
      const agent = found.agent.id;
      const id = newId();
      const hash = hashOf(JSON.stringify([agent, raw]));
      const task = {
        id,
        agent,
        goal,
        parent,
        request: { messages: [], plan: null, artifacts: [], memory: [], viap: raw, eventId },
        idempotency: { key: keyOf(parent), hash },
        now: clock.now(),
      };
      const added = await store.addTask(task, BOUNDS);
      if (added.kind === 'full') return { ok: false, reason: FULL[added.bound] };
      if (added.kind === 'conflict') {
        return { ok: false, reason: 'Not begun: this very call has begun another task already.' };
      }
      return { ok: true, taskId: added.kind === 'there' ? added.task.id : id, said: accepted(agent) };
    },

    async given(call) {
      const task = await store.task({ key: keyOf(call) });
      return task === null ? null : accepted(task.agent);
    },
  };
}

/** One task per call. */
function keyOf({ turnId, callId }: DelegatingCall): string {
  return `sessions_spawn ${turnId} ${callId}`;
}

function accepted(agent: string): string {
  return (
    `Accepted: ${agent} works on it now, beside this conversation. The outcome comes to you by itself, as <task_completed>: ` +
    'do not ask for it, do not wait for it, and promise nothing about it. End your answer with a short word that it is being done.'
  );
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
