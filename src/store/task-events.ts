/** Tasks' events and ends: by their runner, a stop, or with their conversation. Pending entries end too. */

import type { RoomId } from '../core/ids.js';
import type { Results } from '../core/journal.js';
import { MOST_EVENTS, type TaskEvent, type TaskResult, type TaskStatus } from '../core/task.js';
import * as db from './db.js';
import { endTaskEntries, IS_DELEGATED, PROCESS_ENDED } from './journal.js';
import { endCallsOf } from './questions.js';
import type { task } from './schema.js';
import { bound, columns, type Some } from './sql.js';

/** The columns needed to end a task. */
export const OPEN_TASK = 'n id chatId roomId personaId turnId callId';
export type OpenTask = Some<typeof task, typeof OPEN_TASK>;

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

interface TaskOver {
  status: TaskStatus;
  result: TaskResult | null;
  error: string | null;
  now: number;
}

/** To be called within a transaction. */
export function* endTask(task: OpenTask, ended: TaskOver): db.Verb<void> {
  const { n, id, chatId } = task;
  const { status, now } = ended;
  yield* db.tell(END, bound({ n, ...ended }));
  yield* addTaskEvent(n, { at: now, kind: 'status', status });
  const isCut = status === 'interrupted' || status === 'stopped';
  const call = { status: isCut ? 'interrupted' : 'completed', results: resultsOf(ended), at: now } as const;
  yield* endTaskEntries(task, call);
  yield* endCallsOf(chatId, id, now);
}

/** Of the call that delegated it. */
function resultsOf({ status, result, error }: TaskOver): Results {
  if (status === 'completed') return { output: result?.summary ?? '' };
  if (status === 'stopped') return { error: TASK_STOPPED };
  return { error: error ?? (status === 'interrupted' ? PROCESS_ENDED : '') };
}

export function* stopTask(task: OpenTask, now: number): db.Verb<void> {
  yield* endTask(task, { status: 'stopped', result: null, error: null, now });
}

/** Stops the tasks of an ended conversation; nothing is reported. */
export function* stopTasksIn(room: RoomId, now: number): db.Verb<void> {
  for (const task of yield* db.all<OpenTask>(OPEN_IN, room)) yield* stopTask(task, now);
}
