/** Rows of tasks, and which of them are not over. */
import { BOARD_CHAT, type NewTask, type Task, type TaskParent } from '../../core/task.js';
import type { Row } from './columns.js';
import type { task } from './schema-task.js';

/** Of a persona, and not over: as the partial index has it. */
export const IS_DELEGATED = `task.room_id is not null and task.status in ('pending', 'running')`;
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
