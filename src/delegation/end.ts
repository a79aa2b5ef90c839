/** The sentences of a task's end, and how it is summed up. Pure. */

import { type Artifacts, deltasIn } from '../core/artifacts.js';
import type { Clock } from '../core/clock.js';
import { cutAt } from '../core/cut.js';
import { channelOf, DEFAULT_PERSONA, type RoomId, roomParts } from '../core/ids.js';
import { callEntryId, type JournalWrite, type Results } from '../core/journal.js';
import type { Log } from '../core/log.js';
import type { Personas } from '../core/persona.js';
import {
  BOARD_CHAT,
  TASK_COMPLETED,
  type Task,
  type TaskEnd,
  type TaskParent,
  type TaskResult,
  type TaskStore,
  taskEventId,
} from '../core/task.js';
import type { Followers } from './tasks.js';
import type { ViapReport } from './viap/report.js';
import type { ViapTask } from './viap/task.js';
import { type OutcomeEnd, outcomeTold } from './viap/told.js';

const MOST_SUMMARY_CHARS = 200;

const INTERRUPTED = 'The gateway stopped while this task ran. It is not run again by itself.';
export const NO_TASK = 'What this task was given can no longer be read.';

export function timeIsUp(minutes: number): string {
  const amount = minutes === 1 ? 'a minute' : `${Math.round(minutes * 100) / 100} minutes`;
  return `The time for this task, ${amount}, was used up before it was done.`;
}

/** The first sentence, or the first line where that is shorter. */
export function summaryOf(text: string): string {
  const line = text
    .slice(0, MOST_SUMMARY_CHARS * 20)
    .split('\n')
    .map((each) => each.replace(/^[\s#>*-]+/, '').trim())
    .find((each) => each !== '' && !/^(`{3,}|~{3,})/.test(each));
  if (line === undefined) return '';
  const sentence = /^.*?[.!?…](?=\s|$)/u.exec(line)?.[0] ?? line;
  return sentence.length <= MOST_SUMMARY_CHARS ? sentence : `${cutAt(sentence, MOST_SUMMARY_CHARS - 1)}…`;
}

// What the journal says of tasks. One that a persona gave is the call that gave it; one of a program is an entry of its own,
// from its beginning to its end, and an event. Pure.

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

function endOfProgramsTask(
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
function endOfCall(
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

// How a task ends: the one place where its result is stored, in one transaction with what the journal says of it and with
// what its persona is told.

export interface EndParts {
  store: Pick<TaskStore, 'finishTask'>;
  artifacts: Pick<Artifacts, 'write' | 'list'>;
  personas: Pick<Personas, 'get'>;
  /** Where a persona hears of it. */
  rooms: { fired(rooms: RoomId[]): Promise<void> };
  /** Those of this process. */
  channels: readonly string[];
  followers: Pick<Followers, 'ended'>;
  clock: Clock;
  log: Log;
}

/** What came of a task. */
export type Outcome =
  | { kind: 'answered'; text: string }
  /** `hasFailed`: the gateway wrote it, because the agent did not. */
  | { kind: 'report'; report: ViapReport; hasFailed: boolean }
  | { kind: 'error'; reason: string }
  | { kind: 'interrupted' };

interface Ending {
  task: Task;
  /** null: a program's task, or one that cannot be read any more. */
  viap: ViapTask | null;
  outcome: Outcome;
  /** Words from outside stood before the model. */
  tainted: boolean;
}

export async function endTask(
  parts: EndParts,
  ending: Ending,
  owner: string,
): Promise<'finished' | 'lost' | 'message'> {
  const { task } = ending;
  const end = await endOf(parts, ending);
  const ended = await parts.store.finishTask(end, owner);
  if (ended === 'message') return ended;
  parts.followers.ended(task.id);
  const room = ended === 'finished' ? task.parent?.room : undefined;
  if (room !== undefined && parts.channels.includes(channelOf(room))) await parts.rooms.fired([room]);
  parts.log.info({ task: task.id, agent: task.agent, status: end.status, ended }, 'a task is over');
  return ended;
}

async function endOf(parts: EndParts, ending: Ending): Promise<TaskEnd> {
  const { task, outcome } = ending;
  const now = parts.clock.now();
  const result = await resultOf(parts, ending);
  const status = statusOf(outcome);
  const error = errorOf(outcome);
  const common = { id: task.id, status, result, error, now };
  if (task.parent === null) return { ...common, entries: endOfProgramsTask(task, common), tell: null };
  const { text, content } = outcomeTold(ending.viap, task.agent, toldOf(outcome));
  return {
    ...common,
    entries: [endOfCall(task.parent, { report: content.report, error: callError(outcome), status, now })],
    tell: {
      ...{ kind: 'event', id: taskEventId(task.id), room: task.parent.room, about: TASK_COMPLETED },
      ...{ text, content, at: now, personaId: await listenerOf(parts, task.parent) },
      actionId: callEntryId(task.parent.turnId, task.parent.callId),
      ...((ending.tainted || task.parent.tainted) && { tainted: true as const }),
    },
  };
}

async function resultOf(parts: EndParts, ending: Ending): Promise<TaskResult | null> {
  const { task, outcome } = ending;
  if (outcome.kind === 'report') {
    const { report } = outcome;
    const artifactRefs = await parts.artifacts.list(task.id);
    return {
      ...{ text: JSON.stringify(report, null, 2), summary: summaryOf(report.summary) },
      ...(artifactRefs.length > 0 && { artifactRefs }),
    };
  }
  return outcome.kind === 'answered' ? withArtifacts(parts, task, outcome.text) : null;
}

/** What an answer says of artifacts is written, and is no part of its words; unless it cannot be written. */
async function withArtifacts(
  { artifacts, log }: EndParts,
  { id: taskId, request }: Task,
  answer: string,
): Promise<TaskResult> {
  const { text, deltas, leftOut } = deltasIn(answer);
  if (leftOut.length > 0) {
    log.warn(
      { task: taskId, items: leftOut.length, why: leftOut[0] },
      'artifacts of an answer were left out',
    );
  }
  const refs = new Map<string, NonNullable<TaskResult['artifactRefs']>[number]>();
  let isWhole = true;
  // What is over is written to the end, whoever stops.
  const { signal } = new AbortController();
  for (const { id, title, type, content, ref } of deltas) {
    if (content === undefined) {
      const named = { ...(title !== undefined && { title }), ...(type !== undefined && { type }) };
      const handedIn = request.artifacts.find((each) => each.id === id);
      // One that only names an id is what the task brought along, or what it has made, which follows.
      if (ref !== undefined || handedIn !== undefined) {
        refs.set(id, { ...handedIn, id, ...named, ...(ref !== undefined && { ref }) });
      }
      continue;
    }
    const written = await artifacts.write(
      { taskId, id, title: title ?? null, type: type ?? null, content },
      signal,
    );
    if (written.ok) continue;
    log.warn({ task: taskId, artifact: id, why: written.reason }, 'an artifact of an answer was not written');
    isWhole = false;
  }
  for (const ref of await artifacts.list(taskId)) refs.set(ref.id, ref);
  const words = isWhole ? text : answer;
  return {
    ...{ text: words, summary: summaryOf(words) },
    ...(refs.size > 0 && { artifactRefs: [...refs.values()] }),
  };
}

function statusOf(outcome: Outcome): TaskEnd['status'] {
  if (outcome.kind === 'interrupted') return 'interrupted';
  return errorOf(outcome) === null ? 'completed' : 'error';
}

/** A report that says no is a task that was completed. */
function errorOf(outcome: Outcome): string | null {
  if (outcome.kind === 'interrupted') return INTERRUPTED;
  if (outcome.kind === 'error') return outcome.reason;
  return outcome.kind === 'report' && outcome.hasFailed ? outcome.report.summary : null;
}

/** Of the call that gave the task: a report that says no is what came of it, too. */
function callError(outcome: Outcome): string | null {
  return outcome.kind === 'report' ? null : errorOf(outcome);
}

function toldOf(outcome: Outcome): OutcomeEnd {
  if (outcome.kind === 'answered') throw new Error('a delegated task ends with a report');
  return outcome;
}

/** For a persona that was deleted meanwhile, the active one tells. */
async function listenerOf({ personas }: EndParts, { room, personaId }: TaskParent): Promise<string | null> {
  return (await personas.get(roomParts(room).chatId, personaId)) === null ? null : personaId;
}
