/** Tasks' rows, events and ends: by their runner, a stop, or with their conversation. Pending entries end too. */

import type { PersonaId, RoomId } from '../core/ids.js';
import type { Results } from '../core/journal.js';
import {
  BOARD_CHAT,
  MOST_EVENTS,
  type NewTask,
  type Task,
  type TaskEvent,
  type TaskParent,
  type TaskResult,
  type TaskStatus,
} from '../core/task.js';
import * as db from './db.js';
import { endTaskEntries, IS_DELEGATED } from './journal.js';
import { endCallsOf } from './questions.js';
import type { task } from './schema.js';
import { bound, columns, type Row } from './sql.js';

/** A process runs it: `@owner`. */
export const IS_HELD_TASK = `status = 'running' and lease_owner = @owner`;

const PARENT = 'roomId personaId turnId callId senderId tainted';
export const LISTED = `id agent goal status createdAt startedAt completedAt result error chatId ${PARENT}`;
export const TASK = `${LISTED} request`;
export const NEW_TASK = `${TASK} idempotencyKey idempotencyHash`;

export type TaskRow = Omit<
  Row<typeof task>,
  'leaseOwner' | 'leaseUntil' | 'idempotencyKey' | 'idempotencyHash' | 'n'
>;
export type ListedRow = Omit<TaskRow, 'request'>;

export function rowOf({ now, parent, idempotency, ...given }: NewTask) {
  return {
    ...given,
    status: 'pending',
    createdAt: now,
    startedAt: null,
    completedAt: null,
    result: null,
    error: null,
    chatId: parent?.chatId ?? BOARD_CHAT,
    roomId: parent?.room,
    personaId: parent?.personaId,
    turnId: parent?.turnId,
    callId: parent?.callId,
    senderId: parent?.senderId,
    tainted: parent?.tainted,
    idempotencyKey: idempotency?.key,
    idempotencyHash: idempotency?.hash,
  };
}

export function toTask({ request, ...row }: TaskRow): Task {
  return { ...toListed(row), request: JSON.parse(request) };
}

export function toListed(row: ListedRow): Omit<Task, 'request'> {
  const { id, agent, goal, status, createdAt, startedAt, completedAt, error } = row;
  const result = row.result === null ? null : JSON.parse(row.result);
  const parent = parentIn(row);
  return { id, agent, goal, status, createdAt, startedAt, completedAt, error, parent, result };
}

function parentIn({ chatId, roomId: room, ...row }: ListedRow): TaskParent | null {
  const { personaId, turnId, callId, senderId, tainted } = row;
  if (room === null || personaId === null || turnId === null || callId === null) return null;
  return { chatId, room, personaId, turnId, callId, senderId: senderId ?? '', tainted: tainted === 1 };
}

/** The columns needed to end a task. */
export const OPEN_TASK = 'n id chatId roomId personaId turnId callId';
export interface OpenTask {
  n: number;
  id: string;
  chatId: string;
  roomId: RoomId | null;
  personaId: PersonaId | null;
  turnId: string | null;
  callId: string | null;
}

const TASK_STOPPED = 'Somebody stopped this before its outcome was known.';
const ADD_EVENT = `
  insert into task_event (task, n, body)
  values (@task, (select coalesce(max(n), 0) + 1 from task_event where task = @task), @body) returning n`;
const END = `
  update task set status = @status, result = @result, error = @error, completed_at = @now,
    lease_owner = null, lease_until = null
  where n = @n`;
const OPEN_IN = `select ${columns(OPEN_TASK)} from task where ${IS_DELEGATED} and room_id = ?`;

export function* addTaskEvent(task: number, event: TaskEvent): db.Verb<void> {
  const n = (yield* db.value<number>(ADD_EVENT, { task, body: JSON.stringify(event) })) ?? 0;
  if (n <= MOST_EVENTS) return;
  yield* db.tell('delete from task_event where task = @task and n <= @upTo', { task, upTo: n - MOST_EVENTS });
}

/** Ends a task; `call`: the outcome of the call that delegated it. To be called within a transaction. */
export function* endTask(
  task: OpenTask,
  ended: { status: TaskStatus; result: TaskResult | null; error: string | null; now: number },
  call: { status: 'completed' | 'interrupted'; results: Results },
): db.Verb<void> {
  const { n, id, chatId } = task;
  const { status, now } = ended;
  yield* db.tell(END, bound({ n, ...ended }));
  yield* addTaskEvent(n, { at: now, kind: 'status', status });
  yield* endTaskEntries(task, { ...call, at: now });
  yield* endCallsOf(chatId, id, now);
}

export function* stopTask(task: OpenTask, now: number): db.Verb<void> {
  const ended = { status: 'stopped', result: null, error: null, now } as const;
  yield* endTask(task, ended, { status: 'interrupted', results: { error: TASK_STOPPED } });
}

/** Stops the tasks of an ended conversation; nothing is reported. */
export function* stopTasksIn(room: RoomId, now: number): db.Verb<void> {
  for (const task of yield* db.all<OpenTask>(OPEN_IN, room)) yield* stopTask(task, now);
}
