/**
 * What the journal says of tasks. One that a persona gave is the call that gave it; one of a program is an entry of its own,
 * from its beginning to its end, and an event. Pure.
 */
import { DEFAULT_PERSONA } from '../core/ids.js';
import { callEntryId, type JournalWrite, type Results } from '../core/journal.js';
import { BOARD_CHAT, type Task, type TaskEnd, type TaskParent } from '../core/task.js';

const OF_PROGRAMS = { chatId: BOARD_CHAT, room: BOARD_CHAT, personaId: DEFAULT_PERSONA } as const;

/** To be stored before anything else is done for it. */
export function beginningOfProgramsTask({ id, agent, goal }: Task, now: number): JournalWrite {
  return {
    ...{ kind: 'intent', ...OF_PROGRAMS, turnId: id },
    entry: {
      ...{ id: entryIdOf(id), type: 'MattTurn', agent, parent_event_id: null },
      ...{ timestamp_intent: new Date(now).toISOString(), status: 'pending', reasoning: '' },
      ...{ action: { tool: 'task', goal }, results: null },
    },
  };
}

export function endOfProgramsTask(
  { id, agent }: Task,
  { status, result, error, now }: Pick<TaskEnd, 'status' | 'result' | 'error' | 'now'>,
): JournalWrite[] {
  const results: Results = error === null ? { output: result?.text ?? '' } : { error };
  const content = {
    ...{ status: status === 'completed' ? 'success' : status, task_id: id },
    ...(error === null ? { summary: result?.summary ?? '' } : { error }),
  };
  return [
    { kind: 'outcome', id: entryIdOf(id), status: endedAs(status), results, at: now },
    {
      ...{ kind: 'event', ...OF_PROGRAMS, turnId: id },
      entry: {
        ...{ id: `evt-task-${id}`, type: 'GUPPIEvent', agent, timestamp_event: new Date(now).toISOString() },
        ...{ event_type: 'TaskCompleted', source: 'GUPPI', content, action_id: entryIdOf(id) },
      },
    },
  ];
}

/** Of the call that gave the task; the event that its room gets says the rest. */
export function endOfCall(
  { turnId, callId }: TaskParent,
  { report, error, status, now }: { report: unknown } & Pick<TaskEnd, 'error' | 'status' | 'now'>,
): JournalWrite {
  const results: Results = error === null ? { output: report } : { error };
  return { kind: 'outcome', id: callEntryId(turnId, callId), status: endedAs(status), results, at: now };
}

function endedAs(status: TaskEnd['status']): 'completed' | 'interrupted' {
  return status === 'interrupted' ? 'interrupted' : 'completed';
}

function entryIdOf(taskId: string): string {
  return `turn-${taskId}`;
}
