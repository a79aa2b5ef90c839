/** Between tasks as the gateway has them and as programs see them. Pure. */
import { ENDED, type Task, type TaskEvent, type TaskStatus, type TaskWish } from '../core/task.js';
import type { NewTaskBody, ShownEvent, ShownTask } from './task-schemas.js';

export function wishOf(body: NewTaskBody): TaskWish {
  const {
    goal,
    agent = null,
    idempotency_key = null,
    messages = [],
    plan = null,
    artifacts = [],
    memory = [],
  } = body;
  return {
    ...{ goal, agent, idempotencyKey: idempotency_key },
    request: {
      ...{ messages, plan },
      artifacts: artifacts.map(present),
      memory: typeof memory === 'string' ? [memory] : memory,
    },
  };
}

export function shownTask(task: Omit<Task, 'request'>): ShownTask {
  const { id, goal, status, agent, createdAt, completedAt, result, error } = task;
  return {
    ...{ id, goal, status, agent, created_at: iso(createdAt) },
    ...(completedAt !== null && { completed_at: iso(completedAt) }),
    ...(result !== null && { result }),
    ...(error !== null && { error }),
  };
}

export function shownEvent(event: TaskEvent): ShownEvent {
  const at = iso(event.at);
  switch (event.kind) {
    case 'status':
      return { kind: event.kind, at, status: event.status };
    case 'tool-call':
      return { kind: event.kind, at, call_id: event.callId, tool: event.tool, arguments: event.arguments };
    case 'tool-result': {
      const { kind, callId, tool, failed, content } = event;
      return { kind, at, call_id: callId, tool, failed, content };
    }
  }
}

export function hasEnded({ status }: { status: TaskStatus }): boolean {
  return ENDED.includes(status);
}

/** Of a task that came to no result. */
export function reasonOf({ status, error }: Pick<Task, 'status' | 'error'>): string {
  if (error !== null) return error;
  if (status === 'stopped') return 'The task was stopped.';
  return status === 'interrupted' ? 'The gateway ended while the task ran.' : 'The task failed.';
}

function iso(at: number): string {
  return new Date(at).toISOString();
}

/** Without the fields that are there and undefined. */
function present<T extends object>(value: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined)) as never;
}
