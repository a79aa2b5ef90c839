/** `Delegation`: stores a persona's task for a runner. Its outcome reaches the persona as an event. */
import { createHash } from 'node:crypto';
import type { Agents, DelegatingCall, Delegation, TaskBounds, TaskStore } from '../core/task.js';
import { readViapTask } from './viap/task.js';

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
  store: TaskStore;
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
      const hash = createHash('sha256')
        .update(JSON.stringify([agent, raw]))
        .digest('hex');
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
      const task = await store.taskOfKey(keyOf(call));
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
