/**
 * The course of tasks, and how they end: by whoever runs them, by a stop, or with the conversation that gave them. Whatever
 * is pending of a task (entries of the journal, questions to people) ends with it.
 */
import type { RoomId } from '../../core/ids.js';
import type { Results } from '../../core/journal.js';
import { MOST_EVENTS, type TaskEvent, type TaskResult, type TaskStatus } from '../../core/task.js';
import type { AskedCalls } from './approvals.js';
import { bound, columns } from './columns.js';
import type { Connection } from './connection.js';
import type { Journal } from './journal.js';
import { IS_DELEGATED } from './task-rows.js';
import type { TaskSignal } from './task-signal.js';

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

const STOPPED = 'Somebody stopped this before its outcome was known.';

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
    over(task, ended, { status: 'interrupted', results: { error: STOPPED } });
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
