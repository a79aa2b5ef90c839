/** Rows of tasks, and which of them are not over. */

import type { RoomId } from '../../core/ids.js';
import type { Results } from '../../core/journal.js';
import {
  BOARD_CHAT,
  MOST_EVENTS,
  type NewTask,
  type Task,
  type TaskEvent,
  type TaskParent,
  type TaskResult,
  type TaskStatus,
} from '../../core/task.js';
import type { Connection } from './connection.js';
import { IS_DELEGATED, type Journal } from './journal.js';
import type { AskedCalls } from './questions.js';
import type { task } from './schema-work.js';
import { bound, columns, type Row } from './sql.js';

/** A process runs it: `@owner`. */
export const IS_HELD_TASK = `status = 'running' and lease_owner = @owner`;

const PARENT = 'roomId personaId turnId callId senderId tainted';
export const LISTED = `id agent goal status createdAt startedAt completedAt result error chatId ${PARENT}`;
export const TASK = `${LISTED} request`;
export const NEW_TASK = `${TASK} idempotencyKey idempotencyHash`;

type Lease = 'leaseOwner' | 'leaseUntil' | 'idempotencyKey' | 'idempotencyHash' | 'n';
export type TaskRow = Omit<Row<typeof task>, Lease>;
export type ListedRow = Omit<TaskRow, 'request'>;

export function rowOf({ now, parent, idempotency, ...task }: NewTask) {
  return {
    ...{ ...task, status: 'pending', createdAt: now, startedAt: null, completedAt: null },
    ...{ result: null, error: null, chatId: parent?.chatId ?? BOARD_CHAT, roomId: parent?.room },
    ...{ personaId: parent?.personaId, turnId: parent?.turnId, callId: parent?.callId },
    ...{ senderId: parent?.senderId, tainted: parent?.tainted },
    ...{ idempotencyKey: idempotency?.key, idempotencyHash: idempotency?.hash },
  };
}

export function toTask({ request, ...row }: TaskRow): Task {
  return { ...toListed(row), request: JSON.parse(request) };
}

export function toListed(row: ListedRow): Omit<Task, 'request'> {
  const { id, agent, goal, status, createdAt, startedAt, completedAt, result, error } = row;
  return {
    ...{ id, agent, goal, status, createdAt, startedAt, completedAt, error, parent: parentIn(row) },
    result: result === null ? null : JSON.parse(result),
  };
}

function parentIn({ chatId, roomId: room, ...row }: ListedRow): TaskParent | null {
  const { personaId, turnId, callId, senderId, tainted } = row;
  if (room === null || personaId === null || turnId === null || callId === null) return null;
  return { chatId, room, personaId, turnId, callId, senderId: senderId ?? '', tainted: tainted === 1 };
}

// Tells whoever watches tasks that one of them has changed, once the transaction that changes it is over.

export type TaskSignal = ReturnType<typeof taskSignal>;

export function taskSignal({ raw }: Pick<Connection, 'raw'>) {
  const watchers = new Set<() => void>();
  let isDue = false;

  function tell(): void {
    isDue = false;
    if (raw.open) for (const watcher of watchers) watcher();
  }

  return {
    watch(changed: () => void): () => void {
      watchers.add(changed);
      return () => void watchers.delete(changed);
    },
    /** Many changes at once are told once. */
    changed(): void {
      if (isDue) return;
      isDue = true;
      setImmediate(tell);
    },
  };
}

// The course of tasks, and how they end: by whoever runs them, by a stop, or with the conversation that gave them. Whatever
// is pending of a task (entries of the journal, questions to people) ends with it.

/** What is needed of a task to end it. */
export const OPEN_TASK = 'n id chatId roomId personaId turnId callId';
export interface OpenTask {
  n: number;
  id: string;
  chatId: string;
  roomId: RoomId | null;
  personaId: string | null;
  turnId: string | null;
  callId: string | null;
}

const TASK_STOPPED = 'Somebody stopped this before its outcome was known.';

export type TaskCourse = ReturnType<typeof taskCourseOf>;

/** To be called within a transaction. */
export function taskCourseOf(
  { raw }: Pick<Connection, 'raw'>,
  { journal, asked, signal }: { journal: Journal; asked: AskedCalls; signal: TaskSignal },
) {
  const addEvent = raw
    .prepare<[object], number>(`
      insert into task_event (task, n, body)
      values (@task, (select coalesce(max(n), 0) + 1 from task_event where task = @task), @body) returning n`)
    .pluck();
  const forgetOldEvents = raw.prepare<[object]>('delete from task_event where task = @task and n <= @upTo');
  const end = raw.prepare<[object]>(`
    update task set status = @status, result = @result, error = @error, completed_at = @now,
      lease_owner = null, lease_until = null
    where n = @n`);
  const openIn = raw.prepare<[RoomId], OpenTask>(
    `select ${columns(OPEN_TASK)} from task where ${IS_DELEGATED} and room_id = ?`,
  );

  function note(task: number, event: TaskEvent): void {
    const n = addEvent.get({ task, body: JSON.stringify(event) }) ?? 0;
    if (n > MOST_EVENTS) forgetOldEvents.run({ task, upTo: n - MOST_EVENTS });
  }

  function over(
    task: OpenTask,
    ended: { status: TaskStatus; result: TaskResult | null; error: string | null; now: number },
    call: { status: 'completed' | 'interrupted'; results: Results },
  ): void {
    const { n, id, chatId } = task;
    const { status, now } = ended;
    end.run(bound({ n, ...ended }));
    note(n, { at: now, kind: 'status', status });
    journal.endTask(task, { ...call, at: now });
    asked.endOf(chatId, id, now);
    signal.changed();
  }

  function stop(task: OpenTask, now: number): void {
    const ended = { status: 'stopped', result: null, error: null, now } as const;
    over(task, ended, { status: 'interrupted', results: { error: TASK_STOPPED } });
  }

  return {
    note,
    /** Ends it; `call`: what becomes of the call that gave it. */
    over,
    stop,
    /** The conversation that gave them is over: nothing is told of them. */
    stopIn(room: RoomId, now: number): void {
      for (const task of openIn.all(room)) stop(task, now);
    },
  };
}
